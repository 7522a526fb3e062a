"""What became of a case: its time, energy, bytes and status on two sides, by the one judge.

A ratio is new / base, so above 1 is worse. docs/method.md, Comparing, has the rules.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

from ...harness.stats.intervals import latency_interval
from ..data.row_groups import Row
from ..data.run_meta import UNFINISHED
from ..judging.pair import energies, energy_ratio, time_ratio
from ..judging.ratio import Ratio, exact_ratio
from ..words import NOT_DECIDED, SAME_RATIO, Mark


class Metric(NamedTuple):
    """What is judged of a case, and the words of its verdicts. `quantity`: in facts."""

    title: str
    better: str
    worse: str
    unit: str | None = None
    quantity: str = "status"


MEASURED = ("latency", "peak_bytes", "energy_per_call")
METRICS = {
    "latency": Metric("time", "faster", "slower", "ms", "latency_ms"),
    "peak_bytes": Metric("peak memory", "less", "more", "bytes", "peak_bytes"),
    "energy_per_call": Metric("energy per call", "less", "more", "J", "energy_per_call_j"),
    "status": Metric("status", "mended", "broken"),
}
"""`status` stands for a case that did not end ok on both sides."""
SAME = "same"
ABSENT = "absent"
"""A case that only one side plans: there is nothing to decide."""
NO_VALUE = "no value on one side"
APART = {"inputs_differ", "other_device"}
"""Reasons for which a ratio has no mark, as the two sides did not do the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is compared, and how.

    `margin_ratio`: times and energies within it are the same. `turns`: a unit of a row stands for a
    run, of so many. `history`: one of base does. `baseline`: the backend that the others of one run
    are compared with, where another status is no change. `other_device`: peak bytes are those of
    another implementation unless both ran one kernel.
    """

    margin_ratio: float = SAME_RATIO
    turns: int | None = None
    history: bool = False
    baseline: str | None = None
    environment_differs: bool = False
    other_device: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """What is known of one metric of one case. `base`, `new`: rows, None of a side that plans no
    such case.

    `ended`: what became of it where there is no mark. `reasons`: keys of words.REASONS, why it is
    not decided or what limits it.
    """

    metric: str
    base: Row | None = None
    new: Row | None = None
    ratio: Ratio | None = None
    ended: str = NOT_DECIDED
    reasons: tuple[str, ...] = ()
    base_value: float = nan
    new_value: float = nan

    @property
    def shown(self) -> Row:
        """The side that names the case: new, or base if new has no such case."""
        shown = self.new or self.base
        assert shown is not None
        return shown

    @property
    def mark(self) -> Mark | None:
        """How sure the ratio is; None without one."""
        return None if self.ratio is None or APART & {*self.reasons} else self.ratio.mark

    @property
    def verdict(self) -> str:
        """`slower`, `same`, `not decided`, as the mark says; or how the case ended."""
        if self.ratio is None or self.mark is None:
            return self.ended
        of = METRICS[self.metric]
        return {"more": of.worse, "less": of.better}.get(self.ratio.word, self.ratio.word)

    @property
    def worse(self) -> bool:
        return self.verdict == METRICS[self.metric].worse

    @property
    def better(self) -> bool:
        return self.verdict == METRICS[self.metric].better

    @property
    def said(self) -> str:
        """The verdict, and for what is not decided how sure it is."""
        if self.verdict != NOT_DECIDED:
            return self.verdict
        return self.mark.words if self.mark else NOT_DECIDED if self.measured else NO_VALUE

    @property
    def measured(self) -> bool:
        """Both sides have the value."""
        return self.ratio is not None


def case_verdicts(
    pairs: Iterable[tuple[Row | None, Row | None]], rules: Rules
) -> list[CaseVerdict]:
    """The verdicts on each (base, new); None stands for a side without this case."""
    return [verdict for base, new in pairs for verdict in _verdicts(base, new, rules)]


def _verdicts(base: Row | None, new: Row | None, rules: Rules) -> Iterator[CaseVerdict]:
    if base is None or new is None or base["status"] != "ok" or new["status"] != "ok":
        yield _status(base, new, rules)
        return
    # one backend was measured on inputs in two orders: by an earlier version, and now
    order = {row.get("input_order") or "heads" for row in (base, new)}
    apart = base["backend"] == new["backend"] and len(order) > 1
    for metric in MEASURED:
        if value_of(base, metric) is not None:
            found = _judged(metric, base, new, rules)
            yield replace(found, reasons=("inputs_differ", *found.reasons)) if apart else found


def value_of(row: Row, metric: str) -> float | None:
    """Of a row that ended ok, in ms, bytes or J; None if it was not measured."""
    if metric == "peak_bytes":
        peak: int | None = row.get("peak_bytes")
        return peak
    samples = energies(row) if metric == "energy_per_call" else row.get("block_ms") or ()
    return latency_interval(samples).value if any(map(any, samples)) else None


def _status(base: Row | None, new: Row | None, rules: Rules) -> CaseVerdict:
    """A case that fails now is worse, whatever its speed was; one not reached is not decided."""
    of = METRICS["status"]
    ended: str = NOT_DECIDED
    reasons: tuple[str, ...] = ("status_differs",)
    if base is None or new is None:
        ended, reasons = ABSENT, ()
    elif {base["status"], new["status"]} & {*UNFINISHED}:
        reasons = ("missing",)
    elif base["status"] == new["status"]:
        ended, reasons = SAME, ()
    elif not rules.baseline and "ok" in (base["status"], new["status"]):
        ended = of.worse if base["status"] == "ok" else of.better
    return CaseVerdict(metric="status", base=base, new=new, ended=ended, reasons=reasons)


def _judged(metric: str, base: Row, new: Row, rules: Rules) -> CaseVerdict:
    before, now = value_of(base, metric), value_of(new, metric)
    if metric == "peak_bytes":
        ratio, before, now = _bytes_ratio(base, new)
        same_kernel = base["kernel"] and base["kernel"] == new["kernel"]
        reasons = ["other_device"] if rules.other_device and not same_kernel else []
    else:
        ratio = time_ratio(new, base) if metric == "latency" else energy_ratio(new, base)
        ratio = ratio and replace(ratio, margin_ratio=rules.margin_ratio)
        reasons = [*_doubts(ratio, rules)] if ratio else []
    return CaseVerdict(
        metric=metric,
        base=base,
        new=new,
        ratio=ratio,
        reasons=tuple(reasons) if ratio else ("missing",),
        base_value=nan if before is None or ratio is None else before,
        new_value=nan if now is None or ratio is None else now,
    )


def _bytes_ratio(base: Row, new: Row) -> tuple[Ratio | None, int | None, int | None]:
    """With the bytes of both. They are exact, so it has no interval; what both keep between calls
    counts.
    """
    before, now = base.get("peak_bytes"), new.get("peak_bytes")
    kept = [row.get("workspace_bytes") for row in (base, new)]
    if before is None or now is None:
        return None, before, now
    if None not in kept:
        before, now = before + kept[0], now + kept[1]
    return exact_ratio(now, before), before, now


def _doubts(ratio: Ratio, rules: Rules) -> Iterator[str]:
    yield from ratio.doubts
    if not ratio.is_decided and not ratio.doubts:
        yield "interval_wide"
    if rules.baseline and not ratio.paired:
        yield "unpaired"
    if ratio.indirect:
        yield "indirect"
    if rules.environment_differs and not ratio.paired and ratio.word != SAME:
        yield "environment_differs"
