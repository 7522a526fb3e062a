"""What h heads cost against one: FLOPs, exponentials, peak memory and time of otherwise equal
problems: a contrast whose base is one head.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

from ..contrasts import Contrast, against_one_head, asks_for, most_heads, of_given_width
from ..data.row_groups import Group, Row, by
from ..data.run_meta import Meta, caption
from ..elements import Bar, Bars, Card, DotPlot, Figure, Table, note
from ..formatting import capital, flops_text, in_brackets, number_text, plural, whole_text
from ..words import meaning_of
from . import Subject
from ._contrasts import Picked, Problems, card, how_compared, pick, sentence, table
from ._over import panel, with_ends

TITLE = "Cost of heads"
SECTION = "asked"
ORDER = 20
USUAL = 8  # heads, which the headline compares with one
FLOPS = "; thick line: FLOPs"
LONGEST = 2.0  # times a ratio: a longer interval is cut off
TABLE = "Time, peak bytes and FLOPs against one head"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """No card where heads of a given width are removed: their contrast has its own."""
    every = against_one_head(rows)
    if not every:
        return Subject(
            lacking="Nothing to compare: no backend ran one problem with 1 head and with more."
        )
    # numbers of two environments are not one comparison
    by_run = by(every, lambda pair: (pair[0].problem["run"], pair[0].problem["python"]))
    firsts = [problems[0] for problems in by_run.values()]
    found = next(filter(None, (_card(problems, meta) for problems in by_run.values())), None)
    curves = (_figure(*pair, meta) for pair in firsts if _is_curve(pair[1]))
    by_length = sorted(every, key=lambda pair: pair[0].problem["seq_len"])
    return Subject(
        card=found,
        lines=tuple(
            f"For {group.at}: {_headline(some)}" for group, some in firsts if len(firsts) > 1
        ),
        blocks=(
            note(how_compared("h = 1")),
            *(one for one in curves if found is None or one != found.picture),
            table(TABLE, "heads", by_length, folded=True),
        ),
    )


def _is_curve(some: Sequence[Contrast]) -> bool:
    return len({one.heads for one in some}) > 1  # two points are none


def _card(problems: Problems, meta: Meta) -> Card | None:
    narrower = [
        (group, some)
        for group, some in problems
        if not (of_given_width(group) and asks_for(meta[group.problem["run"]], "heads"))
    ]
    if not narrower:
        return None
    usual = [(group, [one for one in some if one.heads == USUAL]) for group, some in narrower]
    picked = pick([pair for pair in usual if pair[1]] or narrower)
    shown = (pair for pair in narrower if any(one is picked.every[0] for one in pair[1]))
    curve = next((_figure(*pair, meta) for pair in shown if _is_curve(pair[1])), None)
    found = card("", picked, narrower, meta, curve)
    if (heads := picked.every[0]).counted("work_flops") != 1:
        return found
    reach = f"{capital(picked.at.strip())}, {heads.heads} heads take the FLOPs of 1."
    found = replace(found, sentence=found.sentence.replace("Same FLOPs.", reach, 1), about="")
    if not isinstance(found.picture, DotPlot):
        return found
    marks = {one.time.mark for one in picked.every if one.time and one.of_heads}
    return replace(found, picture=_bars(picked, found.picture.table), note=meaning_of(marks))


def _bars(picked: Picked, table: Table) -> Bars:
    """FLOPs as bars of one length, memory as squares, time as bars beside that of one head."""
    every = [one for one in picked.every if one.of_heads]
    first, sizes = picked.every[0], [one for one in every if isfinite(one.peak_bytes)]
    sizes.sort(key=lambda one: -one.peak_bytes)
    times = {one.backend: one.time for one in every if one.time}
    ends = (time.high if isfinite(time.high) else time.value for time in times.values())
    most = min(max([1.0, *ends]), LONGEST * max([1.0, *(one.value for one in times.values())]))
    flops = f"FLOPs: the same, {flops_text(first.row['work_flops'])}"
    groups = {
        flops: [
            Bar(backend="", label=plural(count, "head"), share=1.0, note="", parts=count)
            for count in (1, first.heads)
        ],
        "Peak memory: one square is that of 1 head": [
            Bar(
                backend=one.backend,
                label=one.backend,
                share=1.0,
                note=f"×{whole_text(one.peak_bytes)}",
                squares=one.peak_bytes,
            )
            for one in sizes
        ],
        "Time: the line is that of 1 head": [
            Bar(
                backend=name,
                label=name,
                share=time.value / most,
                note=f"{time.mark.sign} ×{number_text(time.value)} {in_brackets(time.bounds)}",
                low=time.low / most if isfinite(time.low) else None,
                high=time.high / most if isfinite(time.high) else None,
                mark=1 / most,
            )
            for name, time in times.items()
        ],
    }
    return Bars(
        title=capital(first.against + picked.at),
        caption="",
        description=f"{capital(picked.answer)} The table has every number.",
        groups=tuple((heading, tuple(bars)) for heading, bars in groups.items() if bars),
        table=table,
        framed=False,
    )


# ---- over h --------------------------------------------------------------------------------------


def _figure(group: Group, some: Sequence[Contrast], meta: Meta) -> Figure:
    told = [one for one in some if one.of_heads]
    drawn = [one.backend for one in most_heads(told)]
    rows = [row for name in drawn for row in _rows([one for one in told if one.backend == name])]
    left = sorted({one.backend for one in some} - set(drawn))
    same_flops = all(one.counted("work_flops") == 1 for one in some)
    return Figure(
        title=group.prefixed(_headline(some)),
        caption=caption(group.problem, meta)
        + (f". Without a point: {', '.join(left)}" if left else ""),
        about="The thick line at 1: the FLOPs, the same for every h",
        panels=tuple(
            replace(
                panel(
                    replace(group, rows=rows, label=""),
                    "heads",
                    column,
                    x_label="heads h",
                    y_label=f"{what}, ratio to h = 1{FLOPS if same_flops else ''}",
                    unit="ratio",
                    line=(1, ""),
                ),
                wide_line=same_flops,
            )
            for what, column in (("time", "time_{}ratio"), ("peak bytes", "bytes_{}ratio"))
        ),
        table=table(TABLE, "heads", [(group, some)]),
    )


def _rows(mine: Sequence[Contrast]) -> Iterator[Row]:
    """Of one backend: its ratios from one head on, 1 for one head itself."""
    base = mine[0].base
    known = {"time_ratio": base.get("latency_ms"), "bytes_ratio": base.get("peak_bytes")}
    yield base | {name: None if value is None else 1.0 for name, value in known.items()}
    for one in mine:
        row = with_ends(one.row, "time_{}ratio", one.time) if one.time else one.row
        yield row | {"bytes_ratio": one.peak_bytes if isfinite(one.peak_bytes) else None}


def _headline(some: Sequence[Contrast]) -> str:
    """Of the backends with the most heads."""
    most = max(one.heads for one in most_heads(some))
    found = [one for one in most_heads(some) if one.heads == most]
    return f"{found[0].against}: {sentence(found)}"
