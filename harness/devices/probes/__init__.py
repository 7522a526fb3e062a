"""What the device does while a backend runs in a steady loop. A probe is one file in this folder.

A probe's file defines
    MEASURES   names of a scenario's `measure` that switch it on; a plain tuple of strings
    COLUMNS    its columns, each name ending in its unit, and what they mean; a name that ends in
               _table is a list
    CALLS      (optional) number of calls of its own, outside the shared loop, because it disturbs
               what it watches
    watch(device) -> Watch

A watch is made before the loop, entered and left while the loop runs, and read after it. Only the
readings that bound the window belong into entering and leaving; whatever is slow or disturbs the
device belongs before or after the loop. `gpu_window` makes a watch from functions.
"""

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast

from ...files.literals import literals
from ..nvml import Device, Gpu, Reading, open_gpu, plausible

Start = TypeVar("Start")
End = TypeVar("End")


class Readings(NamedTuple):
    """The columns of a probe: a value, or None and in `reasons` why there is none."""

    values: dict[str, Any]
    reasons: dict[str, str]


@dataclass(kw_only=True)
class Window(Generic[Start, End]):
    """One window of one probe: `start` and `end` run at its two ends.

    `read` makes the columns from their results after the loop: each a value, or what NVML gave, a
    Reading, which has none if no driver can have counted it (nvml.plausible). A missing counter
    never raises.
    """

    start: Callable[[], Start]
    end: Callable[[], End]
    read: Callable[[Start, End], Mapping[str, Any]]

    def __enter__(self) -> Self:
        self._at_start = self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._at_end = self.end()

    def readings(self) -> Readings:
        found = {
            name: plausible(name, one) if isinstance(one, Reading) else Reading(one)
            for name, one in self.read(self._at_start, self._at_end).items()
        }
        return Readings(
            {name: one.value for name, one in found.items()},
            {name: one.reason for name, one in found.items() if one.reason},
        )


Watch = Window[Any, Any]


def missing(columns: Collection[str], reason: str) -> dict[str, Reading]:
    """No column has a value, all for the same reason."""
    return dict.fromkeys(columns, Reading(None, reason))


def missing_window(columns: Collection[str], reason: str) -> Watch:
    """A window without a device."""
    return Window(start=lambda: None, end=lambda: None, read=lambda *_: missing(columns, reason))


def gpu_window(
    device: Device,
    columns: Collection[str],
    *,
    start: Callable[[Gpu], Start],
    end: Callable[[Gpu], End],
    read: Callable[[Gpu, Start, End], Mapping[str, Any]],
    board_only: str = "",
) -> Watch:
    """A Window of a GPU; if it cannot be opened every column is missing, with the reason.

    `board_only`: why the columns are missing for an instance of a GPU (MIG).
    """
    gpu, reason = open_gpu(device)
    if gpu is None or (board_only and gpu.instance is not None):
        return missing_window(columns, reason or board_only)
    return Window(
        start=lambda: start(gpu),
        end=lambda: end(gpu),
        read=lambda at_start, at_end: read(gpu, at_start, at_end),
    )


class Probe(Protocol):
    MEASURES: tuple[str, ...]
    COLUMNS: Mapping[str, str]

    def watch(self, device: Device) -> Watch: ...


# ---- the files of this folder --------------------------------------------------------------------


HERE = Path(__file__).parent


def names() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in HERE.glob("[!_]*.py")))


@cache
def load(name: str) -> Probe:
    return cast(Probe, importlib.import_module(f"{__name__}.{name}"))


@cache
def declared() -> dict[str, tuple[tuple[str, ...], bool]]:
    """MEASURES of each probe, and whether it has CALLS, read without importing: it may need torch.

    Raises ValueError if MEASURES is not a plain tuple of strings.
    """
    found = {}
    for name in names():
        path, values = HERE / f"{name}.py", {}
        with suppress(ValueError):
            values = literals(path, ("MEASURES", "CALLS"))
        switches = values.get("MEASURES")
        if not isinstance(switches, tuple) or not all(isinstance(one, str) for one in switches):
            raise ValueError(
                f"{path}: MEASURES must be a plain tuple of strings, since the file is read"
                " without running it"
            )
        found[name] = (switches, "CALLS" in values)
    return found


def measures(*, own_calls: bool | None = None) -> tuple[str, ...]:
    """The names of `measure` that switch on a probe; only one that makes calls of its own, or only
    one that watches the shared steady loop, if that is said.
    """
    found = (some for some, own in declared().values() if own_calls in (None, own))
    return tuple(sorted({name for some in found for name in some}))


def requested(measure: Iterable[str]) -> tuple[Probe, ...]:
    """The probes that these names of `measure` switch on."""
    asked = set(measure)
    return tuple(probe for probe in map(load, names()) if asked & set(probe.MEASURES))


def own_calls(probe: Probe) -> int | None:
    """How many calls of its own it makes; None if it shares the steady loop."""
    return getattr(probe, "CALLS", None)
