"""What h heads cost against one: FLOPs, exponentials, peak memory and time of otherwise equal
problems: a contrast whose base is one head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

from ..contrasts import (
    Contrast,
    against_one_head,
    asks_for,
    most_heads,
    of_given_width,
)
from ..data.row_groups import Group, Row, backends
from ..data.run_meta import Meta, caption
from ..elements import Card, Figure, note
from ..words import SAME_RATIO
from . import Subject
from ._contrasts import (
    Problems,
    counted_rows,
    dot_plot,
    how_compared,
    lines,
    measured_rows,
    sentence,
    table,
    why_undecided,
)
from ._over import n_text, not_drawn, panel

TITLE = "Cost of heads"
ORDER = 20
NEEDS = ("heads", "work_flops", "peak_bytes", "latency_ms")
MOST_FIGURES = 2
TABLE = "Time, peak bytes and FLOPs against one head"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """No card where heads of a given width are removed: their contrast has its own."""
    every = against_one_head(rows)
    if not every:
        return Subject(
            lacking="There is nothing to compare: no backend was measured with one head and with"
            " more on an otherwise equal problem."
        )
    narrower = [
        (group, some)
        for group, some in every
        if not (of_given_width(group) and asks_for(meta[group.problem["run"]], "heads"))
    ]
    first: dict[tuple[str, str | None], tuple[Group, Sequence[Contrast]]] = {}
    for group, some in every:
        first.setdefault((group.problem["run"], group.problem["python"]), (group, some))
    others = [pair for pair in every if pair not in first.values()]
    drawn = [
        (group, some)
        for group, some in [*first.values(), *others][: max(MOST_FIGURES, len(first))]
        if len({one.heads for one in some}) > 1  # two points are no curve
    ]
    left = [group for group, _ in every if group not in [group for group, _ in drawn]]
    by_length = sorted(every, key=lambda pair: pair[0].problem["seq_len"])
    return Subject(
        card=_card(narrower) if narrower else None,
        lines=tuple(  # the card is about one run in one environment
            f"For {group.at}: {_headline(some)}" for group, some in first.values() if len(first) > 1
        ),
        blocks=(
            note(how_compared("h = 1")),
            *(_figure(group, some, meta) for group, some in drawn),
            *(not_drawn(left, "; the table has them all") if drawn else ()),
            table(TABLE, "heads", lines(by_length), folded=True),
        ),
    )


# ---- the card: one problem -----------------------------------------------------------------------


def _card(found: Problems) -> Card:
    group, some = _common(found)
    heads = some[0].heads
    same = {axis: value for axis, value in group.problem.items() if axis != "seq_len"}
    names = backends(
        one.row
        for other, every in found
        if {axis: other.problem[axis] for axis in same} == same
        for one in every
    )
    at = n_text(group.problem["seq_len"])
    others = [part for part in group.label.split(", ") if part and not part.startswith("N\u00a0=")]
    longest = ""
    if len(some) == len(names) > 1:
        every = "both" if len(names) == 2 else f"all {len(names)}"
        longest = f"{at} is the longest at which {every} ran with both."
    same_text = f"Grey: ±\u00a0{100 * SAME_RATIO:g}\u00a0%, “same”."
    return Card(
        title=f"{heads} heads against one",
        subtitle=", ".join(("ratio", f"at {at}", *others)),
        sentence=sentence(some),
        picture=dot_plot(
            (*counted_rows(some), *measured_rows(some, names)),
            f"{heads} heads to one",
            with_remarks=False,
        ),
        note=" ".join(filter(None, (longest, same_text, why_undecided(some)))),
    )


def _common(found: Problems) -> tuple[Group, list[Contrast]]:
    """The problem and the number of heads with the most comparisons: one per backend.

    With equally many: the one with most heads, then the longest N.
    """
    choices = [
        (group, [one for one in some if one.heads == heads and one.is_known])
        for group, some in found
        for heads in {one.heads for one in some}
    ]
    known = [(group, some) for group, some in choices if some]
    return max(
        known, key=lambda pair: (len(pair[1]), pair[1][0].heads, pair[0].problem["seq_len"] or 0)
    )


# ---- over h --------------------------------------------------------------------------------------


def _figure(group: Group, some: Sequence[Contrast], meta: Meta) -> Figure:
    drawn = [one.backend for one in most_heads(some)]
    rows = [row for name in drawn for row in _rows([one for one in some if one.backend == name])]
    left = sorted({one.backend for one in some} - set(drawn))
    return Figure(
        title=group.prefixed(_headline(some)),
        caption=caption(group.problem, meta)
        + (f". Without a point: {', '.join(left)}" if left else ""),
        about="The line at 1: more heads for free",
        panels=tuple(
            panel(
                replace(group, rows=rows, label=""),
                "heads",
                column,
                x_label="heads h",
                y_label=f"{what}, ratio to h = 1",
                unit="ratio",
                line=(1, ""),
            )
            for what, column in (("time", "time_{}ratio"), ("peak bytes", "bytes_{}ratio"))
        ),
        table=table(TABLE, "heads", lines([(group, some)]), folded=True),
    )


def _rows(mine: Sequence[Contrast]) -> Iterator[Row]:
    """Of one backend: its ratios from one head on, 1 for one head itself."""
    base = mine[0].base
    known = {"time_ratio": base.get("latency_ms"), "bytes_ratio": base.get("peak_bytes")}
    yield base | {name: None if value is None else 1.0 for name, value in known.items()}
    for one in mine:
        time = {
            f"time_{part}ratio": one.time and getattr(one.time, of)
            for part, of in (("", "value"), ("low_", "low"), ("high_", "high"))
        }
        bytes_ratio = one.peak_bytes if isfinite(one.peak_bytes) else None
        yield one.row | time | {"bytes_ratio": bytes_ratio}


def _headline(some: Sequence[Contrast]) -> str:
    """Of the backends with the most heads."""
    known = most_heads(some)
    most = max(one.heads for one in known)
    return f"{most} heads against one: {sentence([one for one in known if one.heads == most])}"
