"""What the device does while a backend runs in a steady loop. A probe is one file here; nothing
else is edited to add one.

A probe's file defines
    MEASURES   names of a scenario's `measure` that switch it on; a plain tuple of strings
    COLUMNS    its numbers, each name ending in its unit, with what they mean; or a name ending in
               _table, for a list of them
    CALLS      (optional) number of calls of its own, outside the shared loop, because it disturbs
               what it watches
    watch(device) -> Watch

Watches are made before the loop, entered and left while it runs, and read after it. So what is slow
or disturbs the device belongs into `watch` or `readings`, and only the two readings that bound a
window into `__enter__` and `__exit__`.
"""

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, cast

from ..nvml import Answer, Device


class Readings(NamedTuple):
    """Every column of a probe: its value, or None and in `reasons` why there is none."""

    values: dict[str, Any]
    reasons: dict[str, str]


class Watch(Protocol):
    """One window of one probe. None of its methods raises because of a counter that is missing."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def readings(self) -> Readings: ...


class Probe(Protocol):
    MEASURES: tuple[str, ...]
    COLUMNS: Mapping[str, str]

    def watch(self, device: Device) -> Watch: ...


def names() -> tuple[str, ...]:
    return tuple(
        sorted(
            module.name
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        )
    )


@cache
def declared() -> dict[str, tuple[tuple[str, ...], bool]]:
    """MEASURES of each probe, and whether it has CALLS; read from the file: it may need torch.

    Raises ValueError if MEASURES is not a plain tuple of strings.
    """
    found = {}
    for name in names():
        path = next(file for folder in __path__ if (file := Path(folder, f"{name}.py")).is_file())
        values = {
            target.id: node.value
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        try:
            switches = ast.literal_eval(values["MEASURES"] or "None")
        except (KeyError, ValueError):
            switches = None
        if not isinstance(switches, tuple) or not all(isinstance(one, str) for one in switches):
            raise ValueError(
                f"{path}: MEASURES must be a plain tuple of strings, since the file is read without"
                " being run"
            )
        found[name] = (switches, "CALLS" in values)
    return found


def measures() -> tuple[str, ...]:
    """Every name of `measure` that switches on a probe."""
    return tuple(sorted({*shared_measures(), *own_call_measures()}))


def shared_measures() -> tuple[str, ...]:
    """Those with a probe that watches the shared steady loop."""
    return _sorted_measures(own_calls=False)


def own_call_measures() -> tuple[str, ...]:
    """Those with a probe that makes calls of its own."""
    return _sorted_measures(own_calls=True)


def _sorted_measures(*, own_calls: bool) -> tuple[str, ...]:
    found = (some for some, own in declared().values() if own is own_calls)
    return tuple(sorted({name for some in found for name in some}))


@cache
def load(name: str) -> Probe:
    return cast(Probe, importlib.import_module(f"{__name__}.{name}"))


def requested(measure: Iterable[str]) -> tuple[Probe, ...]:
    """The probes that these names of `measure` switch on."""
    asked = set(measure)
    return tuple(probe for probe in map(load, names()) if asked & set(probe.MEASURES))


def own_calls(probe: Probe) -> int | None:
    """How many calls of its own it wants; None where it shares the steady loop."""
    return getattr(probe, "CALLS", None)


def told(answers: Mapping[str, Answer]) -> Readings:
    """What NVML answered, column by column."""
    return Readings(
        {name: one.value for name, one in answers.items()},
        {name: one.reason for name, one in answers.items() if one.reason},
    )


def nothing(columns: Iterable[str], reason: str) -> Readings:
    """No column has a value, all for the same reason."""
    found = list(columns)
    return Readings(dict.fromkeys(found), dict.fromkeys(found, reason))
