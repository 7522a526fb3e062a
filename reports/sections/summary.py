"""The answers: who is fastest, where memory ends, what heads cost; how far to trust them, and who
wins where.
"""

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from ..analysis import (
    approximate,
    heads,
    memory,
    recurrence,
    speed,
    trust,
    wall,
)
from ..analysis import (
    max_seq_len as longest,
)
from ._badges import badges
from ..analysis.audited_kernels import by_gpu, kernels
from ..analysis.audited_kernels import finding as kernels_finding
from ..analysis.rows import case_key
from ..comparison import environments
from ..data.run_meta import Meta, question
from ..data.exactness import is_exact, meanings, note
from ..data.row_groups import (
    Group,
    Row,
    axis_text,
    axis_title,
    backends,
    groups,
    records,
    value_text,
    varying_axes,
)
from ..elements import Badges, Block, Table, Text
from ..formatting import STATUS_WORDS, number_text, plural, time_text

TITLE = "Summary"
ORDER = 10
NEEDS = ("status", "latency_ms")
ABOUT = ("cases", "kernels")
MOST_PROBLEMS = 3  # sentences per subject; the sections below have the rest
MOST_TABLE_ROWS = 40
MOST_QUESTIONS = 4


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    questions = list(dict.fromkeys(filter(None, map(question, meta.values()))))
    if len(questions) <= MOST_QUESTIONS:  # more stand with their runs, at the top of the page
        yield from (Text(text=one, kind="question") for one in questions)
    rows = records(frame)
    for between in filter(lambda found: found.findings, environments.compared(rows, meta)):
        yield Text(text=f"{environments.finding(between)}.")
        yield from (
            Text(text=f"{said[0].upper()}{said[1:]}.") for said in environments.exceptions(between)
        )
    walls = longest.wall_groups(meta)
    yield from _sentences(
        [f"{group.said(longest.finding(group.rows))}." for group in walls], "Memory wall"
    )
    audited = by_gpu(kernels(meta))
    yield from _sentences(
        [f"{kernels_finding(members)}." for members in audited.values()], "GPU anatomy"
    )
    if not rows:
        if not walls and not audited:
            yield Text(text="The plan has no case.")
        return
    over_n = groups(rows, "seq_len")
    if any(row["latency_ms"] is not None for row in rows):
        raced = [group for group in over_n if speed.longest_race(group)]
        if len(raced) > MOST_PROBLEMS:
            yield Text(text=f"At the longest N of each problem: {speed.tally(raced)}.")
        yield from _sentences(
            [f"{group.said(speed.finding(group))}." for group in raced], "Latency"
        )
    else:
        yield Text(text="No case has a latency.")
    yield from _sentences(
        [f"{group.said(approximate.finding(group))}." for group in approximate.approximating(rows)],
        "Approximate attention",
    )
    yield from _sentences(
        [f"{group.said(recurrence.finding(group))}." for group in recurrence.recurring(rows)],
        "Recurrence",
    )
    if any(row["status"] in wall.OUT_OF_MEMORY for row in rows):
        yield from _sentences(
            [
                f"{group.said(wall.finding(wall.ends(group)))}."
                for group in over_n
                if _ran_out(group)
            ],
            "Memory wall",
        )
    else:
        yield Text(text="Nothing ran out of memory.")
    if differing := sum(bool(memory.disagreement(row)) for row in rows):
        yield Text(
            text=(
                f"The ways of counting peak bytes disagree on {plural(differing, 'case')}: see"
                " Memory of a call in the report."
            )
        )
    compared = [
        (group, cost) for group, costs in heads.comparable(rows) for cost in heads.most_heads(costs)
    ]
    for python, backend in dict.fromkeys(
        (group.problem["python"], cost.backend) for group, cost in compared
    ):
        mine = [
            (group, cost)
            for group, cost in compared
            if (group.problem["python"], cost.backend) == (python, backend)
        ]
        group, cost = max(mine, key=lambda pair: pair[0].problem["seq_len"] or 0)
        yield Text(text=f"For {_at(group)}: {heads.finding(cost)}.")
    yield from (Text(text=warning) for warning in trust.warnings(rows))
    yield Badges(badges=badges(rows, meta))
    yield from _map(rows)
    yield Text(text=_tally(rows), kind="note")


def _sentences(sentences: list[str], section: str) -> Iterator[Block]:
    for sentence in sentences[:MOST_PROBLEMS]:
        yield Text(text=sentence)
    if more := sentences[MOST_PROBLEMS:]:
        yield Text(text=f"{plural(len(more), 'more problem')}: see {section} below.", kind="note")


def _ran_out(group: Group) -> bool:
    return any(row["status"] in wall.OUT_OF_MEMORY for row in group.rows)


def _at(group: Group) -> str:
    """The label, and N even where it does not vary."""
    n = axis_text("seq_len", group.problem["seq_len"])
    return (
        group.label if n in group.label.split(", ") else ", ".join(filter(None, (n, group.label)))
    )


def _tally(rows: list[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    said = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    # A note may hold several; each is said once, whatever it stands beside.
    notes = sorted(
        {note for row in rows for note in (row.get("latency_note") or "").split("; ") if note},
        reverse=True,
    )
    limits = f" Intervals are at 95 % ({'; '.join(notes)})." if notes else " Intervals are at 95 %."
    return f"{plural(len(rows), 'case')}: {'; '.join(said)}.{limits}"


def _map(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every problem against every backend, a latency with its multiple of the
    fastest, or why there is none.
    """
    problems = groups(rows, None)
    axes = varying_axes([group.problem for group in problems]) or ["seq_len"]
    names = backends(rows)
    lines, strong, failed, cases = [], set(), set(), {}
    for line, group in enumerate(problems[:MOST_TABLE_ROWS]):
        by_backend = {row["backend"]: row for row in group.rows}
        ranking = speed.race(group.rows)
        if ranking.clear:
            strong.add((line, len(axes) + names.index(ranking.ranking[0]["backend"])))
        for place, name in enumerate(names, start=len(axes)):
            if name in by_backend:
                cases[line, place] = case_key(by_backend[name])
                if by_backend[name]["status"] != "ok":
                    failed.add((line, place))
        cells = [cell(by_backend[name], ranking) if name in by_backend else "" for name in names]
        lines.append((*(value_text(axis, group.problem[axis]) for axis in axes), *cells))
    inexact = [row for row in rows if not is_exact(row)]
    yield Table(
        title=(
            "Who wins where: latency, and how many times as long as the fastest; bold: faster by"
            " more than noise"
        )
        + (" than every other exact backend" if inexact else ""),
        columns=(*(axis_title(axis) for axis in axes), *names),
        rows=tuple(lines),
        strong=frozenset(strong),
        failed=frozenset(failed),
        cases=cases,
    )
    if inexact:
        yield Text(text=f"Not ranked: {'; '.join(meanings(inexact))}.", kind="note")
    if len(problems) > MOST_TABLE_ROWS:
        yield Text(
            text=f"{len(problems) - MOST_TABLE_ROWS} more problems stand in the table of all rows.",
            kind="note",
        )


def cell(row: Row, ranking: speed.Race) -> str:
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]]
    if row["latency_ms"] is None:
        return "not timed"
    said = time_text(row["latency_ms"])
    if not is_exact(row):
        times = (
            f" · {number_text(row['latency_ms'] / ranking.ranking[0]['latency_ms'])}×"
            if ranking.ranking
            else ""
        )
        return f"{said}{times} · {note(row)}"
    if not ranking.margins:
        return f"{said} · the only {'exact ' if ranking.inexact else ''}one"
    if row is ranking.ranking[0]:
        return f"{said} · {'fastest' if ranking.clear else 'no clear winner'}"
    return f"{said} · {number_text(row['latency_ms'] / ranking.ranking[0]['latency_ms'])}×"
