"""Whether devices of one kind take the same time: the slowest over the fastest, case by case."""

from math import isfinite

import pandas as pd

from ...harness.stats.intervals import Interval
from ..comparison.devices import MARGIN_RATIO, Copies, copies_of
from ..comparison.devices_text import finding, problem_text, ratio_text, spread_text
from ..data.row_groups import records
from ..data.run_meta import Meta
from ..elements import Card, Dot, DotPlot, DotRow, Table
from ..formatting import plural
from ..words import Word, word_of

ORDER = 6
ALL_COPIES = True
MOST_DOTS = 12  # those that differ most
ALL, MEAN = "all cases", "mean"


def card(frame: pd.DataFrame, meta: Meta) -> Card | None:
    found = [one for one in copies_of(records(frame), meta) if one.spread]
    if not found:
        return None
    dots = [line for one in found for line in _lines(one)]
    left = sum(len(one.cases) for one in found) - sum(label != MEAN for _, label, *_ in dots)
    return Card(
        name="devices",
        title="Between devices",
        sentence=" ".join(_sentence(one) for one in found),
        picture=DotPlot(
            rows=tuple(
                DotRow(group=group, label=label, dot=_dot(ratio, word))
                for group, label, ratio, word in dots
            ),
            x_label="time on the slower device over that on the faster",
            band_ratio=MARGIN_RATIO,
            description=(
                "Ratios of times on two devices of one kind on one logarithmic axis, a row for the"
                " geometric mean and one per case, with 95 % intervals. The band around 1 counts"
                " as the same. The table below has every number."
            ),
            table=Table(
                title="Time on the slower device over that on the faster",
                columns=("backend", "problem", "ratio"),
                rows=tuple((group, label, ratio_text(ratio)) for group, label, ratio, _ in dots),
            ),
        ),
        subtitle="the same cases on two devices of one kind, measured on purpose",
        note=(
            "Devices differ with their hosts, and with what else ran there."
            + (
                f" {plural(left, 'more case is', 'more cases are')} under Between devices."
                if left > 0
                else ""
            )
        ),
    )


def _sentence(found: Copies) -> str:
    assert found.spread is not None
    return f"{finding(found)}. Device-to-device spread: {spread_text(found.spread)}."


def _lines(found: Copies) -> list[tuple[str, str, Interval, Word]]:
    """The backend and the problem, the ratio, and what it lets one say; the mean first, then the
    cases that differ most, by backend.
    """
    pair = found.spread
    assert pair is not None
    words: dict[str, Word] = {"differ": "more", "same": "same", "undecided": "undecided"}
    worst = found.cases[:MOST_DOTS]
    names = list(dict.fromkeys(one.new["backend"] for one in worst))
    return [
        (ALL, MEAN, pair.ratio, words[pair.verdict]),
        *(
            (
                one.new["backend"],
                problem_text(one, found),
                one.ratio,
                word_of(one.ratio.low, one.ratio.high, MARGIN_RATIO),
            )
            for one in sorted(worst, key=lambda one: names.index(one.new["backend"]))
        ),
    ]


def _dot(ratio: Interval, word: Word) -> Dot:
    known = isfinite(ratio.low) and isfinite(ratio.high)
    return Dot(
        ratio=ratio.value,
        low=ratio.low if known else None,
        high=ratio.high if known else None,
        word=word,
    )
