"""Cases over their bases: the one pairing of two cases, with the ratios of each pair."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..data.columns import DTYPES
from ..data.load import as_frame
from ..data.row_groups import Row
from .pair import time_ratio
from .ratio import count_ratio

if TYPE_CHECKING:
    import pandas as pd  # a third of a second, which pages without a pair do without

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
