"""Every latency of a run: over N in figures, and beside the fastest in one table."""

from collections.abc import Iterator, Sequence

from ...harness.stats.wide_intervals import says_nothing
from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    case_key,
    distinguishing_axes,
    groups,
    value_text,
)
from ..data.run_meta import Meta
from ..elements import Block, Figure, Marked, note
from ..formatting import STATUS_WORDS, UNCERTAIN, in_brackets, number_text, time_text
from ..quantity import Number
from ..ratio import time_ratio
from ._over import Line, by_backend, latencies, lines_over
from ._race import Race, finding, longest_race, race, tally

FEW_POINTS = 3  # over N: problems with as few are drawn as small multiples,
FEWEST_MULTIPLES = 3  # if there are so many of them
MOST_PROBLEMS = 40  # of the table of all


def figures(over_n: Sequence[Group], meta: Meta) -> Iterator[Figure]:
    """A figure per problem; of problems with few points one, with a panel for each."""
    few = all(len(group.lengths) <= FEW_POINTS for group in over_n)
    if len(over_n) < FEWEST_MULTIPLES or not few:
        yield from (_figure([group], finding(group), meta) for group in over_n)
        return
    longest = [found[1] for group in over_n if (found := longest_race(group)) and found[1].margins]
    where = "At the longest N of each problem that two exact backends finished"
    yield _figure(over_n, f"{where}: {tally(longest) if longest else 'none'}", meta)


def _figure(some: Sequence[Group], title: str, meta: Meta) -> Figure:
    heads, lines = lines_over(some, "seq_len")
    races = _races(lines)
    table = by_backend(
        "Latency, with half the width of its 95 % interval",
        heads,
        lines,
        lambda row, here: _with_width(row, races[id(here)]),
    )
    return latencies(some, title, meta, table)


def _races(lines: Sequence[Line]) -> dict[int, Race]:
    """By the identity of a line's rows: every cell asks for it."""
    return {id(rows): race(rows) for _, rows in lines}


def _with_width(row: Row, found: Race) -> Marked:
    """Strong if it wins."""
    low, high = row["latency_low_ms"], row["latency_high_ms"]
    half = f" ± {number_text(100 * ((high / low) ** 0.5 - 1))} %" if low and high else ""
    if half and says_nothing(low, high):
        half = in_brackets(UNCERTAIN)
    time = time_text(row["latency_ms"]) + half if row["latency_ms"] is not None else _no_time(row)
    return Marked(cell=Number(time), strong=found.clear and row is found.ranking[0])


def _no_time(row: Row) -> str:
    return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"


# ---- every problem -------------------------------------------------------------------------------


def every_latency(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every latency as a multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
    inexact = [row for row in rows if not is_exact(row)]

    lines: list[Line] = [
        (tuple(value_text(axis, group.problem[axis]) for axis in axes), group.rows)
        for group in problems[:MOST_PROBLEMS]
    ]
    races = _races(lines)

    def cell(row: Row, here: Sequence[Row]) -> Marked:
        found = races[id(here)]
        return Marked(
            cell=beside(row, found),
            strong=found.clear and row is found.ranking[0],
            failed=row["status"] != "ok",
            case=case_key(row),
        )

    yield by_backend(
        "Who wins where: latency, and its ratio to the fastest; bold: faster by more than"
        f" noise{' than every other exact backend' if inexact else ''}; tie: not clearly slower"
        " than the fastest",
        [axis_title(axis) for axis in axes],
        lines,
        cell,
    )
    if inexact:
        yield note(f"Not ranked: {'; '.join(meanings(inexact))}.")
    if len(problems) > MOST_PROBLEMS:
        yield note(f"{len(problems) - MOST_PROBLEMS} more problems are in the table of all rows.")


def beside(row: Row, found: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 · tie`, `out of memory`."""
    if row["latency_ms"] is None:
        return _no_time(row)
    text, ranked = time_text(row["latency_ms"]), found.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        times = f" · ×{number_text(ratio.value)}" if ratio else ""
        return f"{text}{times} · {exactness_note(row)}"
    if not found.margins:
        return f"{text} · the only {'exact ' if found.inexact else ''}one"
    if row is ranked[0]:
        tie = " = ".join(one["backend"] for one in found.tied)
        return f"{text} · {'fastest' if found.clear else f'tie: {tie}'}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    pairs = zip(ranked[1:], found.margins, strict=True)
    margin = next(margin for other, margin in pairs if other["case"] == row["case"])
    return f"{text} · ×{number_text(margin.value)}{'' if margin.clear else ' · tie'}"
