"""What h heads cost against one: FLOPs, peak bytes and time on otherwise equal problems."""

from dataclasses import dataclass
from math import isfinite, nan
from typing import Literal

from ...harness.stats.intervals import equivalence
from ..data.row_groups import Group, Row, backends, groups
from ..formatting import list_text, number_text, times_text
from ..ratio import Ratio, time_ratio
from ..words import DISTURBED

MARGIN_RATIO = 0.05  # costs within this margin count as equal
Answer = Literal["yes", "no", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCost:
    """Ratios to the row with one head; NaN or None if either has no number."""

    backend: str
    heads: int
    row: Row
    one: Row
    flops: float
    exps: float
    peak_bytes: float
    time: Ratio | None


def comparable(rows: list[Row]) -> list[tuple[Group, list[HeadCost]]]:
    """Every problem on which some backend has one head and more.

    Problems with the most measured backends come first, then the longest.
    """
    found = [(group, _costs(group)) for group in groups(rows, "heads")]
    known = [(group, costs) for group, costs in found if most_heads(costs)]
    return sorted(
        known, key=lambda pair: (-len(most_heads(pair[1])), -(pair[0].problem["seq_len"] or 0))
    )


def _costs(group: Group) -> list[HeadCost]:
    costs = []
    for backend in backends(group.rows):
        by_heads = {row["heads"]: row for row in group.rows if row["backend"] == backend}
        one = by_heads.get(1)
        if one is None or len(by_heads) < 2:
            continue
        costs += [
            HeadCost(
                backend=backend,
                heads=heads,
                row=row,
                one=one,
                flops=_quotient(row.get("work_flops"), one.get("work_flops")),
                exps=_quotient(row.get("work_exps"), one.get("work_exps")),
                peak_bytes=_quotient(_bytes(row), _bytes(one)),
                time=time_ratio(row, one) if heads != 1 else None,
            )
            for heads, row in sorted(by_heads.items())
        ]
    return costs


def share_width(group: Group) -> bool:
    """Heads are h slices of d_model, so more heads are narrower."""
    return group.problem.get("d_k") == group.problem.get("d_v") == "d_model/h"


def _bytes(row: Row) -> float | None:
    """With what is kept between calls, where that is known."""
    needed: float | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


def _quotient(numerator: float | None, denominator: float | None) -> float:
    return numerator / denominator if numerator is not None and denominator else nan


def most_heads(costs: list[HeadCost]) -> list[HeadCost]:
    """Per backend the comparison with the most heads that has a time or bytes."""
    best: dict[str, HeadCost] = {}
    for cost in costs:
        if cost.heads > 1 and (cost.time is not None or isfinite(cost.peak_bytes)):
            best[cost.backend] = cost
    return list(best.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class SameTime:
    """Whether two times are equal within 5 %, and the interval of their ratio that decides it."""

    answer: Answer
    value: float
    low: float
    high: float
    ratio: Ratio

    @property
    def noise_shown(self) -> bool:
        """Whether the text says that noise is why it is undecided."""
        return self.answer == "undecided" and bool(self.ratio.noise or self.ratio.disturbed)

    @property
    def text(self) -> str:
        """`1.02 times (0.99 to 1.04)`; why not, if it is undecided because of noise."""
        text = times_text(self.value, self.low, self.high) + (
            "" if self.ratio.paired else ", unpaired"
        )
        if not self.noise_shown:
            return text
        noise = self.ratio.noise
        return f"{text}, which allows for {noise}" if noise else f"{text}{DISTURBED}"


def same_time(cost: HeadCost) -> SameTime | None:
    """Whether h heads take the time of one head within 5 %."""
    return equal_time(cost.time, cost.row, cost.one)


def equal_time(ratio: Ratio | None, row: Row, base: Row) -> SameTime | None:
    """Whether two cases take the same time within 5 %, by an equivalence test.

    None without a ratio; "no" if the interval of the test lies beyond the margin. If the two were
    not measured in the same blocks of several processes, the interval of their ratio is used, which
    is stricter. Times of several processes that other work disturbed decide nothing; the interval
    of a single one allows for that.
    """
    if ratio is None:
        return None
    low, high, edge = ratio.low, ratio.high, 1 + MARGIN_RATIO
    straddles = low < edge < high or low < 1 / edge < high
    # The test's interval lies within the ratio's; it is slow, and only needed if that is undecided.
    if ratio.paired and not ratio.noise_ratio and straddles:
        found = equivalence(row["block_ms"], base["block_ms"], MARGIN_RATIO)
        low, high = found.low, found.high
    is_same = 1 / edge < low and high < edge
    differs = low > edge or high < 1 / edge
    decides = bool(ratio.noise) or not ratio.disturbed
    return SameTime(
        answer="undecided"
        if not decides
        else "yes"
        if is_same
        else "no"
        if differs
        else "undecided",
        value=ratio.value,
        low=low,
        high=high,
        ratio=ratio,
    )


def answer(cost: HeadCost) -> str:
    """One sentence on FLOPs, bytes and time of h heads.

    `fused: 8 heads cost as many FLOPs as one head, 7.22 times the peak bytes, and more time: 1.12
    times (1.11 to 1.13)`.
    """
    parts = []
    if cost.flops == 1:
        parts.append("as many FLOPs as one head")
    elif isfinite(cost.flops):
        parts.append(f"{number_text(cost.flops)} times the FLOPs of one head")
    if cost.peak_bytes == 1:
        parts.append("the same peak bytes")
    elif isfinite(cost.peak_bytes):
        parts.append(f"{number_text(cost.peak_bytes)} times the peak bytes")
    if found := same_time(cost):
        texts = {
            "yes": "the same time within 5 %",
            "no": f"{'more' if found.value > 1 else 'less'} time",
            "undecided": "a time that may or may not be the same",
        }
        parts.append(f"{texts[found.answer]}: {found.text}")
    return f"{cost.backend}: {cost.heads} heads cost {list_text(parts)}"


def finding(cost: HeadCost) -> str:
    """One sentence on the time and the peak bytes of h heads.

    `fused with 8 heads takes 1.90 times (1.85 to 1.96) the time of one head, with 8.00 times the
    peak bytes and the same FLOPs`.
    """
    rest = [
        f"{_times(value)} {what}"
        for value, what in ((cost.peak_bytes, "peak bytes"), (cost.flops, "FLOPs"))
        if isfinite(value)
    ]
    name = f"{cost.backend} with {cost.heads} heads"
    if cost.time is None:
        return f"{name} needs {list_text(rest)} as with one head"
    unpaired = "" if cost.time.paired else " (unpaired)"
    more = f", with {list_text(rest)}" if rest else ""
    if isfinite(cost.time.low) and not cost.time.clear:
        return f"{name} and one head cannot be told apart in time ({cost.time.doubt}){more}"
    times = times_text(cost.time.value, cost.time.low, cost.time.high)
    return f"{name} takes {times} the time of one head{unpaired}{more}"


def headline(costs: list[HeadCost]) -> str:
    """Time and bytes of each backend with its most heads."""
    texts = []
    for cost in most_heads(costs):
        time = f"{number_text(cost.time.value)} times the time" if cost.time else "no time"
        known = isfinite(cost.peak_bytes)
        size = f"{_times(cost.peak_bytes)} bytes" if known else "bytes not measured"
        texts.append((cost.heads, f"{cost.backend} {time}, {size}"))
    most = max(heads for heads, _ in texts)
    return f"{most} heads against one: " + "; ".join(
        text if heads == most else f"{text} (h = {heads})" for heads, text in texts
    )


def _times(value: float) -> str:
    return "the same" if value == 1 else f"{times_text(value)} the"
