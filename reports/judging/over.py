"""Cases over their bases: the one pairing of two cases, with the ratios of each pair."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.beside import worker_of
from ..data.cases import cases as cases_of
from ..data.exactness import is_exact
from ..data.row_groups import Row
from .pair import time_ratio
from .ratio import count_ratio

if TYPE_CHECKING:
    import pandas as pd  # a third of a second, which pages without a pair do without

COUNTS = ("input_bytes", "peak_bytes", "needed_bytes", "work_flops", "work_exps")


def over(cases: "pd.DataFrame", base: "pd.DataFrame", on: Sequence[str]) -> "pd.DataFrame":
    """Each case that has a base, beside the first one that equals it `on` these columns; in order.

    `time`: a Ratio, None without both latencies. `peak_bytes_ratio` and so on: exact, NaN without
    both counts. Columns of the base end in `_base`.
    """
    pairs = cases.merge(base.drop_duplicates([*on]), on=[*on], suffixes=("", "_base"))
    found: dict[str, Any] = {"time": [*map(time_ratio, pairs["row"], pairs["row_base"])]}
    for name in COUNTS:
        sides = pairs[[name, f"{name}_base"]].astype(object)  # Python's integers
        both = sides.where(sides.notna(), None).to_numpy()
        found[f"{name}_ratio"] = [count_ratio(*counts) for counts in both]
    return pairs.assign(**found)


def fastest(cases: "pd.DataFrame", axes: Sequence[str]) -> "pd.DataFrame":
    """The fastest exact case of each problem that these axes tell apart: by latencies, but by
    ratios where those were measured in several workers, or other work disturbed them.
    """
    timed = cases[cases["latency_ms"].notna() & cases["row"].map(is_exact)]
    timed = timed.sort_values(["latency_ms", "case"]).assign(worker=timed["row"].map(worker_of))
    pairs = over(timed, timed, axes)
    is_first = pairs["row"].map(id) == pairs["row_base"].map(id)
    pairs["value"] = [one.value for one in pairs["time"]]
    pairs["rank"] = pairs["value"].mask(is_first, 1.0)
    apart = pairs.groupby([*axes], dropna=False)["worker"].transform("nunique") > 1
    by_processor = pairs["time"].map(lambda one: one.by_processor_time).astype(bool)
    pairs["moved"] = (pairs["rank"] < 1) & (apart | by_processor)
    problems = pairs.groupby([*axes], dropna=False)
    pairs["rank"] = pairs["rank"].where(problems["moved"].transform("any"), 1.0)
    first = pairs.sort_values("rank", kind="stable").drop_duplicates([*axes])
    return first[[*cases.columns]]


def paired(cases: Sequence[Row], base: Sequence[Row], on: Sequence[str], *more: str) -> list[Any]:
    """Both rows of each pair, its time ratio and `more` columns of `over`."""
    if not cases or not base:
        return []
    pairs = over(cases_of(cases), cases_of(base), on)
    return [*pairs[["row", "row_base", "time", *more]].to_numpy().tolist()]
