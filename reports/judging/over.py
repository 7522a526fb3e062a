"""Cases over their bases, the one pairing of two cases; and what holds of many pairs at once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, isfinite, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...harness.files.printable import visible
from ...harness.stats.contrasts import holm, pooled
from ...harness.stats.intervals import CONFIDENCE, Interval
from ..data.columns import DTYPES
from ..data.load import as_frame
from ..data.row_groups import Row, by
from ..formatting import number_text, plural
from ..words import CONFIRMED
from .pair import baseline_ratio, time_ratio
from .ratio import Ratio, count_ratio

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("input_bytes", "peak_bytes", "needed_bytes", "work_flops", "work_exps")


def cases_of(rows: Sequence[Row], axes: Sequence[str] = (), **more: Any) -> "pd.DataFrame":
    """A line per row: these axes, what is counted (Int64) and the `row` itself. `more`: further
    columns.
    """
    more["row"] = [*rows]
    return as_frame(rows, [*axes, *COUNTS], DTYPES).assign(**more)


def over(cases: "pd.DataFrame", base: "pd.DataFrame", on: Sequence[str]) -> "pd.DataFrame":
    """Each case that has a base, beside the first one that equals it `on` these columns; in order.

    `time`: a Ratio, None without both latencies. `peak_bytes_ratio` and so on: exact, NaN without
    both counts.
    """
    pairs = cases.merge(base.drop_duplicates([*on]), on=[*on], suffixes=("", "_base"))
    found: dict[str, Any] = {"time": [*map(time_ratio, pairs["row"], pairs["row_base"])]}
    for name in COUNTS:
        sides = pairs[[name, f"{name}_base"]].astype(object)  # Python's integers
        both = sides.where(sides.notna(), None).to_numpy()
        found[f"{name}_ratio"] = [count_ratio(*counts) for counts in both]
    return pairs.assign(**found)


def paired(cases: Sequence[Row], base: Sequence[Row], on: Sequence[str], *more: str) -> list[Any]:
    """Both rows of each pair, its time ratio and `more` columns of `over`."""
    if not cases or not base:
        return []
    pairs = over(cases_of(cases, on), cases_of(base, on), on)
    return [*pairs[["row", "row_base", "time", *more]].to_numpy().tolist()]


# ---- many at once --------------------------------------------------------------------------------


ALPHA = 1 - CONFIDENCE


def beyond(ratios: Sequence[Ratio], margin_ratio: float) -> list[bool]:
    """Which ratios are beyond the margin even among so many: the probability that any of them is
    wrong is 5 % at most (Holm 1979). Exact ones count by their value.
    """
    contrasts = [one.contrast for one in ratios]
    p_values = [nan if one is None else one.p_beyond(margin_ratio) for one in contrasts]
    places = [place for place, p_value in enumerate(p_values) if isfinite(p_value)]
    adjusted = dict(zip(places, holm([p_values[place] for place in places]), strict=True))
    edge = 1 + margin_ratio
    return [
        (one.low > edge or one.high < 1 / edge) and adjusted.get(place, 0.0) <= ALPHA
        for place, one in enumerate(ratios)
    ]


def geometric_mean(ratios: Sequence[Ratio]) -> Interval | None:
    """Of ratios with samples, whose number is `units`; None without one.

    No bounds (NaN) unless the cases share their processes, and it is known how much runs differ.
    """
    known = [(one, one.contrast) for one in ratios if one.contrast is not None]
    if not known:
        return None
    contrasts = [contrast for _, contrast in known]
    is_known = not any("between_runs" in one.doubts for one, _ in known)
    low, high = nan, nan
    if is_known and (shared := pooled(contrasts)):
        noisiest = max(contrasts, key=lambda one: sum(spread.sd**2 for spread in one.effects))
        interval = replace(shared, effects=noisiest.effects).interval()
        low, high = interval.low, interval.high
    value = exp(fmean(contrast.log_ratio for contrast in contrasts))
    return Interval(value=value, low=low, high=high, units=len(contrasts))


def differing_baselines(rows: Sequence[Row]) -> Iterator[str]:
    """Whose baseline is confirmed to have taken another time beside it than in the run's other
    workers: `Beside mine, sdpa took 1.4 times its time.`; of several cases `... 1.2 to 1.4 times
    its time in 2 of 3 cases.`
    """
    known = [(row, ratio) for row in rows if (ratio := baseline_ratio(row)) is not None]
    for (mine, base), some in by(known, lambda one: (one[0]["backend"], one[0]["beside"])).items():
        values = sorted(ratio.value for _, ratio in some if ratio.mark == CONFIRMED)
        if values:
            times = " to ".join(dict.fromkeys(number_text(one) for one in (values[0], values[-1])))
            where = f" in {len(values)} of {plural(len(some), 'case')}" if len(some) > 1 else ""
            yield f"Beside {visible(mine)}, {visible(base)} took {times} times its time{where}."
