"""The answers in words: who is fastest, where memory ends, what heads cost; and who wins where."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import pandas as pd

from ..analysis import (
    growth_along,
    max_seq_len,
    memory,
    speed,
    wall,
)
from ..comparison.devices import copies_of
from ..data.copies import first_copies
from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    by_environment,
    case_key,
    distinguishing_axes,
    groups,
    records,
    value_text,
)
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, caution, note
from ..formatting import STATUS_WORDS, number_text, plural, time_text
from ..ratio import time_ratio
from ..subjects import _trust

TITLE = "Summary"
ORDER = 10
NEEDS = ("status", "latency_ms")
ALL_COPIES = True
MOST_PROBLEMS = 3  # sentences per subject; the sections below have the rest
MOST_TABLE_ROWS = 40


class Finder(Protocol):
    """A module of analysis with a sentence on a group."""

    def finding(self, group: Group) -> str: ...


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows, copies = records(first_copies(frame)), copies_of(records(frame), meta)
    walls = max_seq_len.wall_groups(meta)
    texts = [group.prefixed(max_seq_len.finding(group.rows)) for group in walls]
    yield from _sentences("Memory wall", texts, about="wall" if len(walls) == 1 else "")
    if rows:
        yield from _of_cases(rows, meta)
        if copies:
            yield note(
                f"With all copies, {plural(len(frame), 'case')}; other sections show the first."
            )
    elif not walls:
        studied = any(run.get("studies") for run in meta.values())
        yield Text(text=f"The plan has no case{', only studies' if studied else ''}.")


def _of_cases(rows: list[Row], meta: Meta) -> Iterator[Block]:
    for block in _answers(rows, meta):
        # Cards are about one environment.
        yield block if len(by_environment(rows)) == 1 else replace(block, about="")
    yield from map(caution, (*_trust.warnings(rows), *_trust.interpreted(rows, meta)))
    yield from _map(rows)
    yield note(_tally(rows))
    yield from map(note, _trust.process_notes(rows))


def _answers(rows: list[Row], meta: Meta) -> Iterator[Text]:
    yield from _sentences("Growth", growth_along.findings(rows, meta), about="growth")
    over_n = groups(rows, "seq_len")
    if any(row["latency_ms"] is not None for row in rows):
        raced = [group for group in over_n if speed.longest_race(group)]
        if len(raced) > MOST_PROBLEMS:
            yield Text(text=f"{speed.tally(raced)}.", about="fastest")
        yield from _sentences("Latency", _findings(speed, raced), about="fastest")
    else:
        yield Text(text="No case has a latency.")
    if ran_out := [group for group in over_n if _ran_out(group)]:
        ends = [group.prefixed(wall.finding(wall.memory_ends(group))) for group in ran_out]
        yield from _sentences("Memory wall", ends, about="wall")
    else:
        yield Text(text="Nothing ran out of memory.")
    if differing := sum(bool(memory.disagreement(row)) for row in rows):
        yield Text(
            text=(
                f"The counts of peak bytes disagree on {plural(differing, 'case')}: see Memory of a"
                " call in the report."
            )
        )


def _findings(module: Finder, found: list[Group]) -> list[str]:
    return [group.prefixed(module.finding(group)) for group in found]


def _sentences(section: str, findings: list[str], about: str = "") -> Iterator[Text]:
    """The first findings; the section has the others. `about`: the card that says the same."""
    for finding in findings[:MOST_PROBLEMS]:
        yield Text(text=f"{finding}.", about=about)
    if more := findings[MOST_PROBLEMS:]:
        text = f"{plural(len(more), 'more problem')}: see {section} below."
        yield Text(text=text, kind="note", about=about)


def _ran_out(group: Group) -> bool:
    return any(row["status"] in wall.OUT_OF_MEMORY for row in group.rows)


def _tally(rows: list[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    texts = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    # A note may have several parts; each is shown once.
    notes = sorted(
        {note for row in rows for note in (row.get("latency_note") or "").split("; ") if note},
        reverse=True,
    )
    limits = f" ({'; '.join(notes)})" if notes else ""
    return f"{plural(len(rows), 'case')}: {'; '.join(texts)}. Intervals are at 95 %{limits}."


def _map(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every latency as a multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
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
            "Who wins where: latency, and its ratio to the fastest; bold: faster by more than"
            f" noise{' than every other exact backend' if inexact else ''}; tie: not clearly slower"
            " than the fastest"
        ),
        columns=(*(axis_title(axis) for axis in axes), *names),
        rows=tuple(lines),
        strong=frozenset(strong),
        failed=frozenset(failed),
        cases=cases,
    )
    if inexact:
        yield note(f"Not ranked: {'; '.join(meanings(inexact))}.")
    if len(problems) > MOST_TABLE_ROWS:
        yield note(f"{len(problems) - MOST_TABLE_ROWS} more problems are in the table of all rows.")


def cell(row: Row, ranking: speed.Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 · tie`, `out of memory`."""
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]]
    if row["latency_ms"] is None:
        return "not timed"
    text, ranked = time_text(row["latency_ms"]), ranking.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        times = f" · ×{number_text(ratio.value)}" if ratio else ""
        return f"{text}{times} · {exactness_note(row)}"
    if not ranking.margins:
        return f"{text} · the only {'exact ' if ranking.inexact else ''}one"
    if row is ranked[0]:
        return f"{text} · {'fastest' if ranking.clear else speed.tie_text(ranking)}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    margin = next(
        margin
        for other, margin in zip(ranked[1:], ranking.margins, strict=True)
        if other["case"] == row["case"]
    )
    tie = "" if margin.clear else " · tie"
    return f"{text} · ×{number_text(margin.value)}{tie}"
