"""Did another environment change the speed? Each environment of a run against the first one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any

from ..comparison.case_samples import CaseSamples
from ..comparison.compare import Comparison, compare_environments
from ..comparison.verdict import CaseVerdict
from ..comparison.verdict_text import (
    TITLES,
    by_case,
    case_table,
    counts_text,
    doubt_lines,
    ended_lines,
    fact_text,
    margin_lines,
    marks_text,
    means_text,
    severity,
    verdict_text,
)
from ..data.row_groups import Row, case_key, label, problem, varying_axes
from ..data.run_meta import Meta, environments
from ..elements import Block, Card, Dot, DotPlot, DotRow, Table, note, table_of
from ..formatting import capital, plural
from ..words import NOT_DECIDED, SEEN
from . import Subject

TITLE = "Between environments"
SECTION = "asked"
ORDER = 5
NEEDS = ("python", "session", "block_ms")
MOST_DOTS = 12  # the worst cases
MOST_TABLE_ROWS = 200


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = compare_environments(list(rows), meta)
    if not found:
        return Subject(
            lacking="Everything was measured in one environment. attnbench run compares several if"
            " --python NAME=PATH is given twice or more."
        )
    timed = [one for one in found if one.latencies]
    lines = [
        line
        for one in found
        if one.verdicts
        for line in (*([] if one.latencies else [finding(one)]), *exceptions(one))
    ]
    return Subject(
        card=_card(timed) if timed else None, lines=tuple(lines), blocks=tuple(_blocks(found, meta))
    )


# ---- sentences -----------------------------------------------------------------------------------


def finding(found: Comparison) -> str:
    """One sentence on latency: how many cases are slower, faster, the same; the geometric mean."""
    against = f"{found.new.name} against {found.base.name}"
    if not found.latencies:
        return f"{against}: no case has a latency in both."
    mean = f"; {means_text({'': found.mean})}" if found.mean else ""
    counts = counts_text(found.latencies, lambda one: place(one.shown, found))
    return f"{against}: {counts}{mean}."


def exceptions(found: Comparison) -> Iterator[str]:
    """What changed beside latencies, which the card has, and why latencies are not decided."""
    new, base = found.new.name, found.base.name
    yield from ended_lines(found.verdicts, lambda one: place(one.shown, found))
    for metric in ("peak_bytes", "energy_per_call"):
        some = [one for one in found.verdicts if one.metric == metric]
        if any(one.worse or one.better for one in some):
            yield f"{capital(TITLES[metric])} in {new} against {base}: {counts_text(some)}."
    undecided = [one for one in found.latencies if one.verdict == NOT_DECIDED]
    yield from islice(doubt_lines(undecided, found.rules), 1)


def place(case: CaseSamples, of: Comparison) -> str:
    """`sdpa at N = 4k`: the backend and the axes that vary, besides the environment."""
    varying = varying_axes([problem(other.shown.problem) for other in of.verdicts])
    axes = [axis for axis in varying if axis != "python"] or ["seq_len"]
    return f"{case.backend} at {label(problem(case.problem), axes)}"


# ---- the card ------------------------------------------------------------------------------------


def _card(found: Sequence[Comparison]) -> Card:
    dots = [(between, one) for between in found for one in _worst(between)]
    margins = [one.margin_ratio for _, one in dots if isfinite(one.margin_ratio)]
    left = sum(len(between.latencies) for between in found) - len(dots)
    more = f" {plural(left, 'more case is', 'more cases are')} under Between environments."
    base = found[0].base.name
    return Card(
        title=f"Against {base}",
        sentence=" ".join(map(finding, found)),
        picture=DotPlot(
            rows=tuple(
                DotRow(
                    group=between.new.name,
                    label=place(one.shown, between),
                    dot=Dot.of(one.ratio, one.low, one.high, one.word, one.mark or SEEN),
                )
                for between, one in dots
            ),
            x_label=f"time over that in {base}",
            band_ratio=max(margins, default=0.0),
            table=table_of(
                f"Time over that in {base}",
                dots,
                {
                    "environment": lambda dot: dot[0].new.name,
                    "case": lambda dot: place(dot[1].shown, dot[0]),
                    "ratio": lambda dot: verdict_text(dot[1]),
                },
            ),
        ),
        subtitle=f"time over that in {base}; above 1 is slower",
        note="Measured alternately in the same blocks, so drift cancels."
        + (more if left > 0 else ""),
    )


def _worst(between: Comparison) -> list[CaseVerdict]:
    known = [one for one in between.latencies if isfinite(one.ratio) and one.ratio > 0]
    return sorted(known, key=severity)[:MOST_DOTS]


# ---- the section ---------------------------------------------------------------------------------


def _blocks(found: Sequence[Comparison], meta: Meta) -> Iterator[Block]:
    yield note(
        "A ratio is the time in an environment over that in the first one: above 1 is slower. They"
        " were measured alternately in the same blocks, so drift of the machine cancels. Verdicts"
        " are those of attnbench compare RUN@NAME RUN@NAME."
    )
    for between in found:
        yield from _table(between, f" of {between.new.meta['run']}" if len(meta) > 1 else "")
        # what the reasons for undecided verdicts mean, and how much change counts as the same
        undecided = [one for one in between.verdicts if one.verdict == NOT_DECIDED]
        yield from map(note, doubt_lines(undecided, between.rules))
        yield from map(note, margin_lines(between.latencies, between.rules))
    for name, run in meta.items():
        if environments(run):
            yield _facts(run, f" of {name}" if len(meta) > 1 else "")


def _table(between: Comparison, of: str) -> Iterator[Block]:
    """A line per case, worst first."""
    cases = by_case(between.verdicts)
    if cases:
        run, base, new = between.new.meta["run"], between.base.name, between.new.name
        yield case_table(
            f"{new} over {base}{of}",
            cases[:MOST_TABLE_ROWS],
            {"case": lambda case: place(case, between)},
            sides=(base, new),
            key=lambda side: case_key({"run": run, "case": side.case}),
        )
        yield from map(note, filter(None, [marks_text(between.verdicts)]))
    if len(cases) > MOST_TABLE_ROWS:
        yield note(
            f"{len(cases) - MOST_TABLE_ROWS} more lines, the least bad ones: attnbench compare has"
            " them all."
        )


def _facts(run: Mapping[str, Any], of: str) -> Block:
    """The facts that differ between the environments."""
    known = environments(run)
    every = {
        fact: [facts.get(fact) for facts in known.values()]
        for fact in dict.fromkeys(fact for facts in known.values() for fact in facts)
    }
    rows = [
        (fact, *map(fact_text, values))
        for fact, values in every.items()
        if any(value != values[0] for value in values)
    ]
    if not rows:
        return note(
            f"No recorded fact differs between the environments{of}: versions, settings and device"
            " are the same."
        )
    title = f"Differences between the environments{of}"
    return Table(title=title, columns=("fact", *known), rows=tuple(rows))
