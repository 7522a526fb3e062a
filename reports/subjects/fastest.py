"""Which exact backend is fastest on each problem, with ties as ties; every latency over N."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..contrasts import against_one_head
from ..data.exactness import meanings
from ..data.row_groups import (
    AXES,
    Group,
    Row,
    axis_text,
    axis_title,
    by_environment,
    case_key,
    groups,
    label,
    over_lengths,
    value_text,
    varying_axes,
)
from ..data.run_meta import Meta
from ..elements import ASIDE, Card, Table, caution
from ..formatting import (
    STATUS_WORDS,
    length_text,
    list_text,
    number_text,
    plural,
    time_text,
)
from . import Subject, _latencies
from . import _race as speed
from . import _trust as trust
from ._over_n import multiples, not_drawn
from ._race import Race, alone, race, tied

TITLE = "Latency"
ORDER = 30
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_FIGURES = 8
MOST_LINES = 3
USUAL_AXIS = "heads"
MOST_ROWS, MOST_COLUMNS, MOST_NAMES = 8, 8, 4
Raced = tuple[Group, Race]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card names who is fastest; below are the latencies over N, and those of every problem."""
    rows = list(rows)
    over_n = [
        group
        for group in over_lengths(rows)
        if any(row["latency_ms"] is not None for row in group.rows)
    ]
    card = _card(rows)
    figures = [(group, _latencies.figure(group, meta)) for group in over_n[:MOST_FIGURES]]
    blocks = [
        *map(caution, trust.cautions(rows, meta)),
        *multiples(figures, speed.tally(over_n)),
        *not_drawn(over_n[MOST_FIGURES:]),
        *(_latencies.table(rows) if trust.timed_rows(rows) else ()),
    ]
    told = card is not None and len(by_environment(rows)) == 1  # it is about one of them
    raced = [] if told else filter(speed.longest_race, groups(rows, "seq_len"))
    lines = [f"{group.prefixed(speed.finding(group))}." for group in raced]
    return Subject(
        card=card,
        lines=tuple(lines[:MOST_LINES]),
        blocks=tuple(blocks),
        lacking="No case has a latency.",
    )


def _card(rows: list[Row]) -> Card | None:
    raced = [(group, race(group.rows)) for group in groups(rows, None)]
    if not any(found.margins for _, found in raced):
        return None
    axis = _second_axis([group.problem for group, _ in raced])
    shown, which = _one_map(raced, axis)
    beside_heads = bool(against_one_head(rows))
    table, wide = _table(shown, axis, beside_heads=beside_heads)
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    left = len(raced) - len(shown)
    notes = [
        "Tie: not told apart, since the 95 % interval of the ratio to the fastest includes 1.",
        f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
        _disturbed([found for _, found in shown if found.clear]),
        f"{plural(left, 'more problem')} below." if left else "",
    ]
    return Card(
        name="fastest",
        title="Who is fastest",
        subtitle=f"time of a call{f', {which}' if which else ''}",
        sentence=_sentence([pair for pair in shown if pair[1].ranking]),
        picture=table,
        note=" ".join(filter(None, notes)),
        wide=wide,
    )


def _disturbed(won: Sequence[Race]) -> str:
    """How many of the races that somebody won other work disturbed."""
    count = sum(any(margin.disturbed for margin in found.margins) for found in won)
    if not count:
        return ""
    return (
        f"Other work disturbed most blocks in {count} of the"
        f" {plural(len(won), 'problem')} that a backend is fastest in: measure again."
    )


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
    contested = {which: sum(bool(one.margins) for _, one in some) for which, some in maps.items()}
    best = max(maps, key=lambda which: contested[which])
    if len(maps[best]) <= 2 < len(raced):
        return list(raced), ""
    return maps[best], best


# ---- the table -----------------------------------------------------------------------------------


def _table(shown: Sequence[Raced], axis: str, *, beside_heads: bool) -> tuple[Table, bool]:
    """And whether it wants the whole width."""
    cells = {(pair[0].problem["seq_len"], pair[0].problem[axis]): pair for pair in shown}
    if len(shown) == 1:
        return _ranking(*shown[0]), False
    lengths = sorted({n for n, _ in cells if n is not None})
    values = list(dict.fromkeys(value for _, value in cells))
    if len(cells) < len(shown) or 2 * len(cells) <= len(lengths) * len(values) > 2:
        return _list(shown), False  # problems differ in more than these two
    wide = len(lengths) > 2 and (beside_heads or len(values) > 2)
    if wide or len(lengths) < len(values):
        kept, across = values[:MOST_ROWS], lengths[-MOST_COLUMNS:]
        lines = [[cells.get((n, value)) for n in across] for value in kept]
        names = [_value_text(axis, value) for value in kept]
        head, columns = _title(axis), [_length(n) for n in across]
    else:
        kept, down = values[: MOST_COLUMNS // 2], lengths[-MOST_ROWS:]
        lines = [[cells.get((n, value)) for value in kept] for n in down]
        names = [length_text(n) for n in down]
        several = len(values) > 1
        head, columns = "N", [axis_text(axis, value) if several else "fastest" for value in kept]
    return (
        Table(
            title="The fastest backend, its time, and the next one's as a multiple of it",
            columns=(head, *columns),
            rows=tuple(
                (name, *("" if pair is None else _cell(*pair) for pair in line))
                for name, line in zip(names, lines, strict=True)
            ),
            cases={
                (row, column): case_key(pair[1].ranking[0])
                for row, line in enumerate(lines)
                for column, pair in enumerate(line, start=1)
                if pair is not None and pair[1].ranking
            },
        ),
        wide,
    )


def _title(axis: str) -> str:
    return "Heads" if axis == "heads" else axis_title(axis)


def _length(n: int) -> str:
    return f"N\u00a0=\u00a0{length_text(n)}"


def _value_text(axis: str, value: Any) -> str:
    return value_text(axis, value) if axis_text(axis, value) else "none"


def _list(shown: Sequence[Raced]) -> Table:
    """A row per problem."""
    contested = [pair for pair in shown if pair[1].margins][:MOST_ROWS]
    axes = varying_axes([group.problem for group, _ in contested]) or ["seq_len"]
    return Table(
        title="The fastest backend, its time, and the next one's as a multiple of it",
        columns=("problem", "fastest"),
        rows=tuple((label(group.problem, axes), _cell(group, one)) for group, one in contested),
    )


def _ranking(group: Group, found: Race) -> Table:
    """All backends of a single problem."""
    texts = ["", *(_ratio_text(margin.value, tied=not margin.clear) for margin in found.margins)]
    failed = [row for row in group.rows if row["status"] != "ok"]
    return Table(
        title="Backends by time",
        columns=("backend", "time", "times the fastest"),
        rows=(
            *(
                (row["backend"], time_text(row["latency_ms"]), text or "fastest")
                for row, text in zip(found.ranking, texts, strict=True)
            ),
            *((row["backend"], STATUS_WORDS[row["status"]], "") for row in failed),
        ),
        cases={(place, 0): case_key(row) for place, row in enumerate(found.ranking)},
    )


def _ratio_text(value: float, *, tied: bool) -> str:
    return f"×{number_text(value)}{', tie' if tied else ''}"


def _cell(group: Group, found: Race) -> str:
    """`tie: sdpa = naive 258 ms · then fused ×1.34`."""
    if not found.ranking:
        statuses = {row["status"] for row in group.rows}
        return STATUS_WORDS[statuses.pop()] if len(statuses) == 1 else "none ran"
    first = found.ranking[0]
    time = time_text(first["latency_ms"])
    if not found.margins:
        return ASIDE.join(filter(None, [f"{first['backend']} {time}", alone(group.rows, found)]))
    even = tied(found)
    slower = [
        f"then {row['backend']} ×{number_text(margin.value)}"
        for row, margin in zip(found.ranking[1:], found.margins, strict=True)
        if margin.clear
    ][:1]
    if not even:
        return ASIDE.join([f"{first['backend']} {time}", *slower])
    names = " = ".join(row["backend"] for row in even[:MOST_NAMES])
    if len(even) == len(found.ranking) > 2:
        names = "all three" if len(even) == 3 else f"all {len(even)}"
    elif len(even) > MOST_NAMES:
        names += f" and {len(even) - MOST_NAMES} more"
    return f"tie: {names}{ASIDE}{', '.join([time, *slower])}"


# ---- the sentence --------------------------------------------------------------------------------


def _sentence(ran: Sequence[Raced]) -> str:
    contested = [pair for pair in ran if pair[1].margins]
    won = Counter(one.ranking[0]["backend"] for _, one in contested if one.clear)
    ties = len(contested) - won.total()
    texts = [
        f"{name} is fastest in {count} of {len(contested)}" for name, count in won.most_common()
    ]
    if ties:
        every = (
            ("both" if ties == 2 else f"all {ties}") if ties == len(contested) > 1 else str(ties)
        )
        are = "are ties" if ties > 1 else "is a tie"
        texts.append(f"{every} {are}" if won else f"{every} problems are ties" if ties > 1 else "")
    tally = list_text([text for text in texts if text]) if len(contested) > 1 else ""
    longest = _longest(contested)
    return " ".join(filter(None, [f"{_capital(tally)}." if tally else "", longest]))


def _capital(text: str) -> str:
    """Names of backends keep their case."""
    return f"{text[0].upper()}{text[1:]}" if text.startswith(("all ", "both ")) else text


def _longest(contested: Sequence[Raced]) -> str:
    """The largest problem that two backends ran: who wins it, and by how much."""
    axes = varying_axes([group.problem for group, _ in contested])
    group, found = max(
        contested, key=lambda pair: tuple(pair[0].rows[0].get(axis) or 0 for axis in _SIZES)
    )
    first, margin = found.ranking[0], found.margins[found.tie or 0]
    rival = found.ranking[(found.tie or 0) + 1]["backend"]
    others = label(group.problem, [axis for axis in AXES if axis in axes and axis != "seq_len"])
    n = group.problem["seq_len"]
    shown = _length(n) if n != 1 or not others else ""  # as it is when tokens come one by one
    where = ", ".join(filter(None, [shown, others]))
    time = time_text(first["latency_ms"])
    times = f"{first['backend']} takes {time}"
    if found.clear:
        ratio = f"{number_text(margin.value)} times as long ({margin.bounds})"
        return f"At {where}: {times}, {rival} {ratio}{margin.beside}."
    return f"At {where}: {times}; {rival} cannot be told apart from it ({margin.doubt})."


_SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")


def _second_axis(problems: Sequence[dict[str, Any]]) -> str:
    """The axis besides N with the most values; heads in a tie."""
    axes = (axis for axis in AXES if axis not in ("run", "seq_len"))
    counts = {axis: len({problem[axis] for problem in problems}) for axis in axes}
    most = max(counts, key=lambda axis: counts[axis])
    return USUAL_AXIS if counts[USUAL_AXIS] == counts[most] else most


# ---- over N --------------------------------------------------------------------------------------


# ---- every problem -------------------------------------------------------------------------------
