"""Which exact backend is fastest on each problem, with ties as ties; every latency over N."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..data.exactness import exactness_note, is_exact, meanings
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    case_key,
    distinguishing_axes,
    groups,
    over_lengths,
    value_text,
)
from ..data.run_meta import Meta
from ..elements import ASIDE, Block, Card, Figure, Marked, Table, note, table_of
from ..formatting import (
    STATUS_WORDS,
    capital,
    length_text,
    more_below,
    number_text,
    paragraph,
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
_SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")
MOST_ROWS, MOST_COLUMNS = 8, 8
BY_TIME = "The fastest backend, its time, and the next one's as a multiple of it"


class Raced(NamedTuple):
    """A problem over N at one of its lengths: the rows, and who is fastest."""

    group: Group
    n: int
    rows: list[Row]
    race: Race


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card names who is fastest; below are the latencies over N, and those of every problem."""
    rows = list(rows)
    timed = [row for row in rows if row["latency_ms"] is not None]
    over_n = [group for group in over_lengths(rows) if any(row in timed for row in group.rows)]
    card = _card(rows)
    raced = [] if card else [group for group in groups(rows, "seq_len") if longest_race(group)]
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
    raced = [
        Raced(group, n, here, race(here))
        for group in groups(rows, "seq_len")
        for n in group.lengths
        for here in [[row for row in group.rows if row["seq_len"] == n]]
    ]
    contested = [one for one in raced if one.race.margins]
    if not contested:
        return None
    labels = list(dict.fromkeys(one.group.label for one in contested))
    lengths = sorted({one.n for one in raced})[-MOST_COLUMNS:]
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    return Card(
        title="Who is fastest",
        subtitle="time of a call",
        sentence=_sentence(contested),
        picture=_table(raced, labels[:MOST_ROWS], lengths),
        note=paragraph(
            "Tie: not told apart, since the 95 % interval of the ratio to the fastest includes 1.",
            f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
            _disturbed([one.race for one in contested if one.race.clear]),
            more_below(len(labels) - MOST_ROWS),
        ),
        wide=len(labels) > 1 and len(lengths) > 2,
    )


def _sentence(contested: Sequence[Raced]) -> str:
    """The tally, and who wins the largest problem that two backends ran, by how much."""
    largest = max(contested, key=lambda one: [one.rows[0].get(axis) or 0 for axis in _SIZES])
    others = largest.group.label if len({one.group.label for one in contested}) > 1 else ""
    # a length of 1 is as it is when tokens come one by one
    shown = n_text(largest.n) if largest.n != 1 or not others else ""
    longest = verdict(largest.race, ", ".join(filter(None, [shown, others])), largest.rows)
    won = f"{tally([one.race for one in contested])}. " if len(contested) > 1 else ""
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


def _table(raced: Sequence[Raced], labels: Sequence[str], lengths: Sequence[int]) -> Table:
    """Problems downwards and lengths across; of a single problem the lengths, of a single race its
    backends.
    """
    if len(raced) == 1:
        return _ranking(raced[0])
    places = {(one.group.label, one.n): one for one in raced}

    def cell(n: int, label: str) -> Marked | str:
        return _cell(places[label, n]) if (label, n) in places else ""

    if len(labels) == 1:
        return table_of(
            BY_TIME, lengths, {"N": length_text, "fastest": partial(cell, label=labels[0])}
        )
    by_n = {n_text(n) if len(lengths) > 1 else "fastest": partial(cell, n) for n in lengths}
    return replace(table_of(BY_TIME, labels, {"problem": str, **by_n}), of_two_axes=True)


def _ranking(of: Raced) -> Table:
    """All backends of a single problem."""
    found, failed = of.race, [row for row in of.rows if row["status"] != "ok"]
    return table_of(
        "Backends by time, with its ratio to the fastest",
        [*found.ranking, *failed],
        {"backend": lambda row: row["backend"], "time": lambda row: beside(row, found)},
        case=case_key,
    )


def _cell(of: Raced) -> Marked | str:
    """`tie: sdpa = naive 258 ms · then fused ×1.34`."""
    found = of.race
    if not found.ranking:
        statuses = {row["status"] for row in of.rows}
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
        text = ASIDE.join(filter(None, [f"{name} {time}", alone(of.rows, found)]))
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
