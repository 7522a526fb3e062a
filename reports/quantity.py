"""Numbers that know their unit and their interval, and write themselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Literal

import humanize

from .formatting import (
    Number,
    bandwidth_text,
    bounds_text,
    bytes_text,
    count_text,
    flops_text,
    in_brackets,
    length_text,
    measured_bounds_text,
    number_text,
    percent_text,
    rate_text,
    ratio_bounds_text,
    time_text,
)

__all__ = ["PREFIXED", "Cell", "Number", "Quantity", "Unit", "cell_text", "is_number"]

if TYPE_CHECKING:
    from ..harness.stats.intervals import Interval  # needs numpy, which plain tables do without

Unit = Literal[
    "ms", "bytes", "flops", "flops_per_s", "bytes_per_s", "j", "share", "ratio", "times",
    "count", "length", "plain",
]  # fmt: skip
"""How a number is written.

`ms`, `bytes`, `flops`, `flops_per_s`, `bytes_per_s`, `j`: with a prefix: `1.20 ms`, `1.5 GiB`.
`share`: `81.0 %`, of 0.81. `times`: `2.10 times`; `ratio`: the same where the column says it,
`2.10`. `count`: `8k` of 8192. `length`: `2 848`. `plain`: three digits.
"""


def joules_text(energy_j: float) -> Number:
    return Number(humanize.metric(energy_j, "J"))


_TEXTS: Mapping[Unit, Callable[[float], str]] = {
    "ms": time_text,
    "bytes": bytes_text,
    "flops": flops_text,
    "flops_per_s": rate_text,
    "bytes_per_s": bandwidth_text,
    "j": joules_text,
    "share": percent_text,
    "count": count_text,
    "length": lambda value: length_text(int(value)),
}
_BARE: Mapping[Unit, Callable[[float], str]] = {
    "share": lambda share: number_text(100 * share),
    "times": number_text,
}
"""In an interval, whose value has the unit already."""
PREFIXED = ("ms", "flops", "flops_per_s", "bytes_per_s", "j")  # by powers of ten
POSITIVE = (*PREFIXED, "share")
RATIOS = ("times", "ratio")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as text: `1.20 ms`, `2.10 times (2.05 to 2.16)`; "" without a value.

    `low` and `high`: its interval, if it has one. `note`: what follows, such as `, unpaired`.
    """

    value: float | None
    unit: Unit = "plain"
    low: float | None = None
    high: float | None = None
    note: str = ""

    @classmethod
    def of(cls, found: "Interval", unit: Unit) -> "Quantity":
        return cls(found.value, unit, found.low, found.high)

    def __str__(self) -> str:
        return f"{self.number}{in_brackets(self.bounds)}{self.note}" if self.number else ""

    @property
    def number(self) -> str:
        """Without interval and note."""
        if self.value is None or not isfinite(self.value):
            return ""
        if self.unit == "times":
            return f"{number_text(self.value)} times"
        return _TEXTS.get(self.unit, number_text)(self.value)

    @property
    def bounds(self) -> str:
        """`2.05 to 2.16`, or that the interval is too wide to say anything; "" without one."""
        text = _BARE.get(self.unit) or _TEXTS.get(self.unit, number_text)
        if self.unit in RATIOS:
            return ratio_bounds_text(self.low, self.high, text)
        if self.unit in POSITIVE:
            return measured_bounds_text(self.low, self.high, text)
        return bounds_text(self.low, self.high, text)


Cell = str | int | float | Quantity | None
"""What a cell of a table holds. An int is written whole, a float with three digits."""


def cell_text(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return number_text(cell) if isinstance(cell, float) else Number(cell)


def is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | Quantity | Number) or cell_text(cell).isdigit()
