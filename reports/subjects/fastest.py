"""Which exact backend is fastest on each problem, with ties as ties; every latency over N."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    AXES,
    Group,
    Row,
    axis_text,
    axis_title,
    by_environment,
    case_key,
    distinguishing_axes,
    groups,
    label,
    over_lengths,
    value_text,
    varying_axes,
)
from ..data.run_meta import Meta
from ..elements import ASIDE, Block, Card, Figure, Marked, Table, note, table_of
from ..formatting import (
    STATUS_WORDS,
    capital,
    length_text,
    number_text,
    plural,
    time_text,
)
from ..ratio import time_ratio
from . import Subject
from ._over import MOST_PANELS, Line, by_backend, latencies, n_text, not_drawn
from ._race import MOST_NAMES, Race, alone, finding, longest_race, race, tally, verdict

TITLE = "Latency"
ORDER = 30
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_DRAWN = 8
MOST_PROBLEMS = 40  # of the table of all
MOST_LINES = 3
USUAL_AXIS = "heads"
MOST_ROWS, MOST_COLUMNS = 8, 8
BY_TIME = "The fastest backend, its time, and the next one's as a multiple of it"
Raced = tuple[Group, Race]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card names who is fastest; below are the latencies over N, and those of every problem."""
    rows = list(rows)
    timed = [row for row in rows if row["latency_ms"] is not None]
    over_n = [group for group in over_lengths(rows) if any(row in timed for row in group.rows)]
    card = _card(rows)
    told = card is not None and len(by_environment(rows)) == 1  # it is about one of them
    raced = [] if told else [group for group in groups(rows, "seq_len") if longest_race(group)]
    return Subject(
        card=card,
        lines=tuple(f"{finding(group)}." for group in raced[:MOST_LINES]),
        blocks=(
            *([_figure(over_n[:MOST_DRAWN], meta)] if over_n else []),
            *not_drawn(over_n[MOST_DRAWN:]),
            *(_every_latency(rows) if timed else ()),
        ),
        lacking="No case has a latency.",
    )


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: list[Row]) -> Card | None:
    raced = [(group, race(group.rows)) for group in groups(rows, None)]
    if not any(found.margins for _, found in raced):
        return None
    axis = _second_axis([group.problem for group, _ in raced])
    shown, which = _one_map(raced, axis)
    table, wide = _table(shown, axis)
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    left = len(raced) - len(shown)
    notes = [
        "Tie: not told apart, since the 95 % interval of the ratio to the fastest includes 1.",
        f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
        _disturbed([found for _, found in shown if found.clear]),
        f"{plural(left, 'more problem')} below." if left else "",
    ]
    return Card(
        title="Who is fastest",
        subtitle=f"time of a call{f', {which}' if which else ''}",
        sentence=_sentence([pair for pair in shown if pair[1].margins]),
        picture=table,
        note=" ".join(filter(None, notes)),
        wide=wide,
    )


_SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")


def _sentence(contested: Sequence[Raced]) -> str:
    """The tally, and who wins the largest problem that two backends ran, by how much."""
    axes = varying_axes([group.problem for group, _ in contested])
    group, found = max(
        contested, key=lambda pair: tuple(pair[0].rows[0].get(axis) or 0 for axis in _SIZES)
    )
    others = label(group.problem, [axis for axis in AXES if axis in axes and axis != "seq_len"])
    n = group.problem["seq_len"]
    shown = n_text(n) if n != 1 or not others else ""  # as it is when tokens come one by one
    longest = verdict(found, ", ".join(filter(None, [shown, others])), group.rows)
    won = f"{tally([one for _, one in contested])}. " if len(contested) > 1 else ""
    return f"{won}{capital(longest)}."


def _disturbed(won: Sequence[Race]) -> str:
    """How many of the races that somebody won other work disturbed."""
    count = sum(any(margin.disturbed for margin in found.margins) for found in won)
    if not count:
        return ""
    return (
        f"Other work disturbed most blocks in {count} of the"
        f" {plural(len(won), 'problem')} that a backend is fastest in: measure again."
    )


def _second_axis(problems: Sequence[dict[str, Any]]) -> str:
    """The axis besides N with the most values; heads in a tie."""
    axes = (axis for axis in AXES if axis not in ("run", "seq_len"))
    counts = {axis: len({problem[axis] for problem in problems}) for axis in axes}
    most = max(counts, key=lambda axis: counts[axis])
    return USUAL_AXIS if counts[USUAL_AXIS] == counts[most] else most


def _one_map(raced: Sequence[Raced], axis: str) -> tuple[list[Raced], str]:
    """The problems that differ in N and this axis only, and what tells them from the others.

    All of them, if there are mostly problems that differ in more.
    """
    varying = varying_axes([group.problem for group, _ in raced])
    others = [other for other in varying if other not in ("seq_len", axis)]
    maps: dict[str, list[Raced]] = {}
    for pair in raced:
        if pair[1].ranking or any(row["status"] != "ok" for row in pair[0].rows):
            maps.setdefault(label(pair[0].problem, others), []).append(pair)
    best = max(maps, key=lambda which: sum(bool(one.margins) for _, one in maps[which]))
    if len(maps[best]) <= 2 < len(raced):
        return list(raced), ""
    return maps[best], best


def _table(shown: Sequence[Raced], axis: str) -> tuple[Table, bool]:
    """A map over N and the axis; N is across if there are several heads, or more than two values.
    Also whether it wants the whole width.
    """
    cells = {(pair[0].problem["seq_len"], pair[0].problem[axis]): pair for pair in shown}
    if len(shown) == 1:
        return _ranking(*shown[0]), False
    lengths = sorted({n for n, _ in cells if n is not None})
    values = list(dict.fromkeys(value for _, value in cells))
    if len(cells) < len(shown) or 2 * len(cells) <= len(lengths) * len(values) > 2:
        return _list(shown), False  # problems differ in more than these two

    def cell(n: int, value: Any) -> Marked | str:
        return _cell(*cells[n, value]) if (n, value) in cells else ""

    if len(values) == 1 or (len(values) == 2 <= len(lengths) and axis != USUAL_AXIS):
        by_value = {
            axis_text(axis, value) if len(values) > 1 else "fastest": partial(cell, value=value)
            for value in values
        }
        return table_of(BY_TIME, lengths[-MOST_ROWS:], {"N": length_text, **by_value}), False
    head = "Heads" if axis == "heads" else axis_title(axis)
    texts = {
        value: value_text(axis, value) if axis_text(axis, value) else "none" for value in values
    }
    by_n = {n_text(n): partial(cell, n) for n in lengths[-MOST_COLUMNS:]}
    return table_of(BY_TIME, values[:MOST_ROWS], {head: texts.get, **by_n}), len(lengths) > 2


def _list(shown: Sequence[Raced]) -> Table:
    """A row per problem."""
    contested = [pair for pair in shown if pair[1].margins][:MOST_ROWS]
    axes = varying_axes([group.problem for group, _ in contested]) or ["seq_len"]
    return table_of(
        BY_TIME,
        contested,
        {
            "problem": lambda pair: label(pair[0].problem, axes),
            "fastest": lambda pair: _cell(*pair),
        },
    )


def _ranking(group: Group, found: Race) -> Table:
    """All backends of a single problem."""
    failed = [row for row in group.rows if row["status"] != "ok"]
    return table_of(
        "Backends by time, with its ratio to the fastest",
        [*found.ranking, *failed],
        {"backend": lambda row: row["backend"], "time": lambda row: beside(row, found)},
        case=case_key,
    )


def _cell(group: Group, found: Race) -> Marked | str:
    """`tie: sdpa = naive 258 ms · then fused ×1.34`."""
    if not found.ranking:
        statuses = {row["status"] for row in group.rows}
        return STATUS_WORDS[statuses.pop()] if len(statuses) == 1 else "none ran"
    first, even = found.ranking[0], found.tied
    time, name = time_text(first["latency_ms"]), first["backend"]
    pairs = zip(found.ranking[1:], found.margins, strict=True)
    slower = [
        f"then {row['backend']} ×{number_text(margin.value)}"
        for row, margin in pairs
        if margin.clear
    ][:1]
    if not found.margins:
        text = ASIDE.join(filter(None, [f"{name} {time}", alone(group.rows, found)]))
    elif not even:
        text = ASIDE.join([f"{name} {time}", *slower])
    else:
        names = " = ".join(row["backend"] for row in even[:MOST_NAMES])
        if len(even) == len(found.ranking) > 2:
            names = "all three" if len(even) == 3 else f"all {len(even)}"
        elif len(even) > MOST_NAMES:
            names += f" and {len(even) - MOST_NAMES} more"
        text = f"tie: {names}{ASIDE}{', '.join([time, *slower])}"
    return Marked(cell=text, case=case_key(first))


# ---- every latency -------------------------------------------------------------------------------


def _figure(over_n: Sequence[Group], meta: Meta) -> Figure:
    """A panel for each problem."""
    title = ". ".join(map(finding, over_n))
    if len(over_n) > MOST_PANELS:
        raced = [found[1] for group in over_n if (found := longest_race(group))]
        contested = [one for one in raced if one.margins]
        known = tally(contested) if contested else "none"
        title = f"At the longest N of each problem that two exact backends finished: {known}"
    return latencies(over_n, title, meta)


def _no_time(row: Row) -> str:
    return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"


def _every_latency(rows: list[Row]) -> Iterator[Block]:
    """The winner map: every latency as a multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
    inexact = [row for row in rows if not is_exact(row)]

    lines: list[Line] = [
        (tuple(value_text(axis, group.problem[axis]) for axis in axes), group.rows)
        for group in problems[:MOST_PROBLEMS]
    ]
    races = {id(rows): race(rows) for _, rows in lines}  # every cell asks for it

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
