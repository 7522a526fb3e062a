"""Whether another environment changed the speed, case by case."""

from math import isfinite
from typing import Literal

import pandas as pd

from ..comparison import environments
from ..comparison.environments import EnvironmentComparison, place
from ..comparison.verdict import SAME, CaseVerdict
from ..comparison.verdict_text import ratio_text, severity, verdict_text
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import Card, Dot, DotPlot, DotRow, Table
from ..formatting import plural

ORDER = 5
MOST_DOTS = 12  # the worst cases


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    rows = records(frame)
    if "python" not in frame.columns:
        return None
    found = [one for one in environments.compare_environments(rows, meta) if one.of_latency]
    if not found:
        return None
    dots = [(between, one) for between in found for one in _worst(between)]
    margins = [one.margin_ratio for _, one in dots if isfinite(one.margin_ratio)]
    cases = sum(len(between.of_latency) for between in found)
    left = cases - len(dots)
    base = found[0].base
    return Card(
        name="environments",
        title=f"Against {base}",
        sentence=" ".join(f"{environments.finding(between)}." for between in found),
        picture=DotPlot(
            rows=tuple(_dot_row(between, one) for between, one in dots),
            x_label=f"time over that in {base}",
            band_ratio=max(margins, default=0.0),
            description=(
                f"Ratios of times to those in {base}, on one logarithmic axis, a row per case with"
                " its 95 % interval. The band around 1 counts as the same. The table below has"
                " every number."
            ),
            table=Table(
                title=f"Time over that in {base}",
                columns=("environment", "case", "ratio", "verdict"),
                rows=tuple(
                    (between.new, place(one, between), ratio_text(one), verdict_text(one))
                    for between, one in dots
                ),
            ),
        ),
        subtitle=f"time over that in {base}; above 1 is slower",
        note=(
            "Measured alternately in the same blocks, so drift cancels."
            + (
                f" {plural(left, 'more case is', 'more cases are')} under Between environments."
                if left > 0
                else ""
            )
        ),
    )


def _worst(between: EnvironmentComparison) -> list[CaseVerdict]:
    known = [one for one in between.of_latency if isfinite(one.ratio) and one.ratio > 0]
    return sorted(known, key=severity)[:MOST_DOTS]


def _dot_row(between: EnvironmentComparison, one: CaseVerdict) -> DotRow:
    known = isfinite(one.low) and isfinite(one.high)
    return DotRow(
        group=between.new,
        label=place(one, between),
        dot=Dot(
            ratio=one.ratio,
            low=one.low if known else None,
            high=one.high if known else None,
            word=_word(one),
        ),
    )


def _word(one: CaseVerdict) -> Literal["same", "more", "less", "undecided"]:
    if one.worse:
        return "more"
    if one.better:
        return "less"
    return "same" if one.verdict == SAME else "undecided"
