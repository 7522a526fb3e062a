"""What a switch is worth in a whole pass: attention beside the products of all layers, whose time
follows from one block that was timed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from ...harness.stats.intervals import Interval, latency_interval
from .answer import Advice
from .asked import Phase, Whole

LOADED = "eager"  # what the worth of another choice is told against


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Of a pass with the fastest implementation: attention's share, and how many times as fast the
    pass is with it as with LOADED; both with bounds, as if all errors went the same way.

    `worth`: None if LOADED is the fastest, or has no time.
    """

    phase: Phase
    context: int
    name: str
    share: Interval
    worth: Interval | None


def shares(advice: Advice) -> Iterator[Share]:
    """At the contexts that were asked, where a block of the model's width was timed."""
    for decision in advice.decisions:
        whole = advice.inquiry.shapes.whole(decision.phase, decision.context)
        best = decision.chosen
        if whole is None or best is None or best.total_ms is None:
            continue
        rest = _rest_ms(advice, whole)
        if rest is None or decision.not_measured:
            continue
        by_name = {one.implementation.name: one.total_ms for one in decision.choices}
        slow = None if decision.name_of_best == LOADED else by_name.get(LOADED)
        yield Share(
            phase=decision.phase,
            context=decision.context,
            name=decision.name_of_best,
            share=_share(best.total_ms, rest),
            worth=None if slow is None else _worth(slow, best.total_ms, rest),
        )


def _rest_ms(advice: Advice, whole: Whole) -> Interval | None:
    """Of all layers beside attention: those of a block, without its attention, so many times."""
    for one in advice.inquiry.implementations:
        found = [advice.rows.of(part).get(one.backend) for part in (whole.block, whole.core)]
        times = [latency_interval((of and of.row.get("block_ms")) or []) for of in found]
        block, core = times
        if all(isfinite(bound) for time in times for bound in (time.value, time.low, time.high)):
            low, high = max(0.0, block.low - core.high), block.high - core.low
            value = min(max(block.value - core.value, low), high)
            if value > 0:
                value, low, high = (whole.times * bound for bound in (value, low, high))
                units = min(block.units, core.units)
                return Interval(value=value, low=low, high=high, units=units)
    return None


def _share(attention: Interval, rest: Interval) -> Interval:
    """Of attention in both together."""
    value, low, high = (
        own / (own + beside)
        for own, beside in (
            (attention.value, rest.value),
            (attention.low, rest.high),
            (attention.high, rest.low),
        )
    )
    return Interval(value=value, low=low, high=high, units=min(attention.units, rest.units))


def _worth(slow: Interval, fast: Interval, rest: Interval) -> Interval:
    """How many times as long the slower one's pass takes."""
    value, low, high = (
        (slower + beside) / (faster + beside)
        for slower, faster, beside in (
            (slow.value, fast.value, rest.value),
            (slow.low, fast.high, rest.high),
            (slow.high, fast.low, rest.low),
        )
    )
    return Interval(value=value, low=low, high=high, units=min(slow.units, rest.units))
