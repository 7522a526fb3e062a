"""What the device does while a backend runs in a steady loop. A probe is one file here; nothing
else is edited to add one.

A probe's file defines
    MEASURES   names of a scenario's `measure` that switch it on
    COLUMNS    its numbers, each name ending in its unit, with what they mean; or a name ending in _table, for a list of them
    CALLS      (optional) so many calls of its own, outside the shared loop, because it disturbs what it watches
    watch(device) -> Watch

Watches are made before the loop, entered and left while it runs, and read after it. So what is slow
or disturbs the device belongs into `watch` or `readings`, and only the two readings that bound a
window into `__enter__` and `__exit__`.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
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
