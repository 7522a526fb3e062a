"""Did another environment change the speed? Each environment of a run against the first one."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from ..comparison import environments
from ..comparison.environments import EnvironmentComparison, place
from ..comparison.verdict import SAME, UNDECIDED, CaseVerdict
from ..comparison.verdict_text import (
    TITLES,
    doubt_lines,
    fact_text,
    margin_lines,
    ratio_text,
    severity,
    value_text,
    verdict_text,
    worth_a_line,
)
from ..data.row_groups import Row, case_key
from ..data.run_meta import Meta
from ..elements import Block, Card, Dot, DotPlot, DotRow, Marked, Table, note, table_of
from ..formatting import plural
from ..quantity import Number
from ..words import Word
from . import Subject

TITLE = "Between environments"
ORDER = 5
NEEDS = ("python", "session", "block_ms")
MOST_DOTS = 12  # the worst cases
MOST_TABLE_ROWS = 200


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = environments.compare_environments(list(rows), meta)
    if not found:
        return Subject(
            lacking="Everything was measured in one environment. attnbench run compares several if"
            " --python NAME=PATH is given twice or more."
        )
    timed = [one for one in found if one.of_latency]
    lines = [
        line
        for one in found
        if one.verdicts
        for line in (
            *([] if one in timed else [environments.finding(one)]),
            *environments.exceptions(one),
        )
    ]
    return Subject(
        card=_card(timed) if timed else None,
        lines=tuple(lines),
        blocks=tuple(_blocks(found, meta)),
    )


def _card(found: Sequence[EnvironmentComparison]) -> Card:
    dots = [(between, one) for between in found for one in _worst(between)]
    margins = [one.margin_ratio for _, one in dots if isfinite(one.margin_ratio)]
    left = sum(len(between.of_latency) for between in found) - len(dots)
    more = f" {plural(left, 'more case is', 'more cases are')} under Between environments."
    base = found[0].base
    return Card(
        title=f"Against {base}",
        sentence=" ".join(map(environments.finding, found)),
        picture=DotPlot(
            rows=tuple(
                DotRow(
                    group=between.new,
                    label=place(one, between),
                    dot=Dot.of(one.ratio, one.low, one.high, _word(one)),
                )
                for between, one in dots
            ),
            x_label=f"time over that in {base}",
            band_ratio=max(margins, default=0.0),
            description=(
                f"Ratios of times to those in {base}, on one logarithmic axis, a row per case with"
                " its 95 % interval. The band around 1 counts as the same. The table below has"
                " every number."
            ),
            table=table_of(
                f"Time over that in {base}",
                dots,
                {
                    "environment": lambda dot: dot[0].new,
                    "case": lambda dot: place(dot[1], dot[0]),
                    "ratio": lambda dot: Number(ratio_text(dot[1])),
                    "verdict": lambda dot: verdict_text(dot[1]),
                },
            ),
        ),
        subtitle=f"time over that in {base}; above 1 is slower",
        note="Measured alternately in the same blocks, so drift cancels."
        + (more if left > 0 else ""),
    )


def _worst(between: EnvironmentComparison) -> list[CaseVerdict]:
    known = [one for one in between.of_latency if isfinite(one.ratio) and one.ratio > 0]
    return sorted(known, key=severity)[:MOST_DOTS]


def _word(one: CaseVerdict) -> Word:
    if one.worse:
        return "more"
    if one.better:
        return "less"
    return "same" if one.verdict == SAME else "undecided"


def _blocks(found: Sequence[EnvironmentComparison], meta: Meta) -> Iterator[Block]:
    yield note(
        "A ratio is the time in an environment over that in the first one: above 1 is slower. They"
        " were measured alternately in the same blocks, so drift of the machine cancels. Verdicts"
        " are those of attnbench compare RUN@NAME RUN@NAME."
    )
    for between in found:
        yield from _table(between, f" of {between.run}" if len(meta) > 1 else "")
        yield from _doubts(between)
    for name, run in meta.items():
        if environments.environments(run):
            yield _facts(run, f" of {name}" if len(meta) > 1 else "")


def _table(between: EnvironmentComparison, of: str) -> Iterator[Block]:
    """Every latency, and other metrics that changed; worst first."""
    shown = sorted(filter(worth_a_line, between.verdicts), key=severity)
    if not shown:
        return

    def value(one: CaseVerdict, *, is_new: bool) -> Marked:
        side = one.new if is_new else one.base
        case = case_key({"run": between.run, "case": side.case}) if side is not None else None
        return Marked(cell=Number(value_text(one, is_new=is_new)), case=case)

    several = any(one.metric != "latency" for one in shown)
    yield table_of(
        f"{between.new} over {between.base}{of}",
        shown[:MOST_TABLE_ROWS],
        {
            "case": lambda one: place(one, between),
            "of": lambda one: TITLES[one.metric] if several else "",
            between.base: lambda one: value(one, is_new=False),
            between.new: lambda one: value(one, is_new=True),
            "ratio": lambda one: Number(ratio_text(one)),
            "verdict": lambda one: Marked(
                cell=verdict_text(one), strong=one.better, failed=one.worse
            ),
        },
        optional=("of",),
    )
    if len(shown) > MOST_TABLE_ROWS:
        yield note(
            f"{len(shown) - MOST_TABLE_ROWS} more lines, the least bad ones: attnbench compare has"
            " them all."
        )


def _doubts(between: EnvironmentComparison) -> Iterator[Block]:
    """What the reasons for undecided verdicts mean, and how much change counts as the same."""
    undecided = [one for one in between.verdicts if one.verdict == UNDECIDED]
    yield from map(note, doubt_lines(undecided, between.rules))
    yield from map(note, margin_lines(between.of_latency, between.rules, between.noise_floor))


def _facts(run: Mapping[str, Any], of: str) -> Block:
    """The facts that differ between the environments."""
    names, differing = list(environments.environments(run)), environments.differing(run)
    if not differing:
        return note(
            f"No recorded fact differs between the environments{of}: versions, settings and device"
            " are the same."
        )
    rows = tuple((fact, *map(fact_text, values)) for fact, values in differing.items())
    return Table(
        title=f"Differences between the environments{of}", columns=("fact", *names), rows=rows
    )
