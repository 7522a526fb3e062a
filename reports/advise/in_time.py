"""The longest context whose attention, in all layers, takes no longer than so many seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from ...harness.stats.intervals import Interval, latency_interval
from .asked import Asked, Implementation, Inquiry, Phase, key_over, length
from .stored import StoredRows

if TYPE_CHECKING:
    from .fitted import Fit  # whose pandas and scipy take long to import


class Time(NamedTuple):
    """Of attention in all layers, in ms; None if it is not known, and `words` say why."""

    total_ms: Interval | None
    words: str


class InTime(NamedTuple):
    """`context` in tokens, None if no time is known; `time`: there. `ended`: a longer one is known
    to take too long; `next_ended`: so is one token more.
    """

    context: int | None
    ended: bool
    next_ended: bool
    time: Time


@dataclass(slots=True)
class TimeOver:
    """Times of an inquiry at any context: measured at this length, or fitted through others."""

    inquiry: Inquiry
    rows: StoredRows
    _fits: dict[Any, "Fit"] = field(default_factory=dict)

    def at(self, implementation: Implementation, phase: Phase, context: int) -> Time:
        """Bounds are sums of bounds, as if all errors went the same way."""
        value = low = high = 0.0
        units: list[int] = []
        words: dict[str, None] = {}
        for asked in self.inquiry.shapes.asked(phase, context):
            found = self._of_call(implementation, asked)
            if found.total_ms is None:
                return found
            value += asked.count * found.total_ms.value
            low += asked.count * found.total_ms.low
            high += asked.count * found.total_ms.high
            units.append(found.total_ms.units)
            words[found.words] = None
        total = Interval(value=value, low=low, high=high, units=min(units, default=0))
        return Time(total, "; ".join(words))

    def longest(
        self, implementation: Implementation, phase: Phase, seconds: float, most: int
    ) -> InTime:
        """Up to `most` tokens: by bisection, as times only grow with the context."""

        def within(context: int) -> bool:
            total_ms = self.at(implementation, phase, context).total_ms
            return total_ms is not None and total_ms.value <= seconds * 1e3

        measured = self._measured(implementation, phase, most)
        low, high = max(filter(within, measured), default=0), most + 1
        middle = most
        while high - low > 1:
            low, high = (middle, high) if within(middle) else (low, middle)
            middle = (low + high) // 2
        time, beyond = (self.at(implementation, phase, n) for n in (max(low, 1), low + 1))
        if not low and time.total_ms is None:
            return InTime(None, False, False, time)
        next_ended = low < most and beyond.total_ms is not None
        longer = (n for n in measured if n > low)
        ended = next_ended or any(self.at(implementation, phase, n).total_ms for n in longer)
        return InTime(low, ended, next_ended, time)

    def _measured(self, implementation: Implementation, phase: Phase, most: int) -> Sequence[int]:
        """Lengths with rows, the shortest first: where there is no fit, only they have a time."""
        found = {
            length(one.row)
            for asked in self.inquiry.shapes.asked(phase, most)
            if asked.problem is not None
            for one in self.rows.over_lengths(asked.problem, implementation.backend)
        }
        return sorted(n for n in found if n <= most)

    def _of_call(self, implementation: Implementation, asked: Asked) -> Time:
        """Of one call in one layer."""
        problem = asked.problem
        if problem is None:
            return Time(None, f"not known for {asked.layer}: {asked.why}")
        stored = self.rows.of(problem).get(implementation.backend)
        if stored is not None:
            row = stored.row
            if row["status"] != "ok":
                return Time(None, f"{row['status']}: {row.get('reason') or ''}")
            time_ms = latency_interval(row.get("block_ms") or [])
            if isfinite(time_ms.value):
                return Time(time_ms, "measured at this length")
        from .fitted import fit

        place = implementation.backend, key_over(problem)
        if place not in self._fits:
            rows = self.rows.over_lengths(problem, implementation.backend)
            self._fits[place] = fit(rows, problem)
        found = self._fits[place].at(length(problem))
        return Time(found.time_ms, found.words)
