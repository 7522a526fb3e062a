"""Which exact backend is fastest on each problem, where that is decided; every latency over N."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

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
from ..deciding import what_decides_ratios
from ..elements import ASIDE, Block, Card, Figure, Marked, Table, note, table_of
from ..formatting import (
    STATUS_WORDS,
    capital,
    length_text,
    list_text,
    more_below,
    paragraph,
    plural,
    time_text,
)
from ..ratio import time_ratio
from ..words import NOT_DECIDED, SAME_RATIO
from . import Subject
from ._over import MOST_PANELS, Line, by_backend, latencies, n_text, not_drawn
from ._race import Race, Raced, alone, finding, longest_race, race, races, tally, verdict

TITLE = "Latency"
ORDER = 30
NEEDS = ("latency_ms", "latency_low_ms", "latency_high_ms")
MOST_DRAWN = 8
MOST_NAMES = 4
MOST_PROBLEMS = 40  # of the table of all
MOST_LINES = 3
_SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")
MOST_ROWS, MOST_COLUMNS = 8, 8
BY_TIME = "The fastest backend, its time, and the next one's as a multiple of it"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card names who is fastest; below are the latencies over N, and those of every problem."""
    rows = list(rows)
    timed = [row for row in rows if row["latency_ms"] is not None]
    over_n = [group for group in over_lengths(rows) if any(row in timed for row in group.rows)]
    card = _card(rows, meta)
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


def _card(rows: list[Row], meta: Meta) -> Card | None:
    raced = races(rows)
    contested = [one for one in raced if one.race.margins]
    if not contested:
        return None
    labels = list(dict.fromkeys(one.group.label for one in contested))
    lengths = sorted({one.n for one in raced})[-MOST_COLUMNS:]
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    return Card(
        title="Who is fastest",
        subtitle="time of a call",
        sentence=paragraph(
            _sentence(contested),
            what_decides_ratios(
                (one.race.rival[1] for one in contested if one.race.close), rows, meta
            ),
        ),
        picture=_table(raced, labels[:MOST_ROWS], lengths),
        note=paragraph(
            "Beside each the next one's time as a multiple, with its interval.",
            _meaning([one.race for one in contested]),
            f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
            _disturbed([one.race for one in contested]),
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


def _meaning(some: Iterable[Race]) -> str:
    """Of the words for races that nobody won; "" without one."""
    some = list(some)
    texts = []
    if any(one.tied for one in some):
        texts.append(f"Tie: shown to be the same within {100 * SAME_RATIO:g} %.")
    if any(one.close and not one.tied for one in some):
        texts.append("Not decided: neither who is faster nor that the two are the same.")
    return " ".join(texts)


def _disturbed(some: Sequence[Race]) -> str:
    """How many races other work disturbed."""
    count = sum(any(margin.is_busy for margin in found.margins) for found in some)
    if not count:
        return ""
    return (
        f"Other work disturbed most blocks in {count} of {plural(len(some), 'problem')}: measure"
        " again when the machine is idle."
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
    """`sdpa 8 ms · fused ×1.34 (1.30 to 1.38)`, `not decided · sdpa 8 ms, fused ×1.02 (...)`."""
    found = of.race
    if not found.ranking:
        statuses = {row["status"] for row in of.rows}
        return STATUS_WORDS[statuses.pop()] if len(statuses) == 1 else "none ran"
    first = found.ranking[0]
    time, name = time_text(first["latency_ms"]), first["backend"]
    if not found.margins:
        parts = [f"{name} {time}", alone(of.rows, found)]
    else:
        other, margin = found.rival
        against = f"{other['backend']} {margin.short}"
        if found.clear:
            parts = [f"{name} {time}", against]
        elif found.tied:
            tied = list_text([row["backend"] for row in found.tied], MOST_NAMES)
            parts = [f"tie: {tied}", f"{time}, {against}"]
        else:
            parts = [NOT_DECIDED, f"{name} {time}, {against}"]
    return Marked(cell=ASIDE.join(filter(None, parts)), case=case_key(first))


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
    by_rows = {id(rows): race(rows) for _, rows in lines}  # every cell asks for it

    def cell(row: Row, here: Sequence[Row]) -> Marked:
        found = by_rows[id(here)]
        return Marked(
            cell=beside(row, found),
            strong=found.clear and row is found.ranking[0],
            failed=row["status"] != "ok",
            case=case_key(row),
        )

    yield by_backend(
        "Who wins where: latency, and its ratio to the fastest; bold: faster by more than"
        f" noise{' than every other exact backend' if inexact else ''}",
        [axis_title(axis) for axis in axes],
        lines,
        cell,
    )
    if meaning := _meaning(by_rows.values()):
        yield note(meaning)
    if inexact:
        yield note(f"Not ranked: {'; '.join(meanings(inexact))}.")
    if len(problems) > MOST_PROBLEMS:
        yield note(f"{len(problems) - MOST_PROBLEMS} more problems are in the table of all rows.")


def beside(row: Row, found: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 (0.9 to 1.2) · not decided`, `out of memory`."""
    if row["latency_ms"] is None:
        return _no_time(row)
    text, ranked = time_text(row["latency_ms"]), found.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        return ASIDE.join(filter(None, [text, ratio.short if ratio else "", exactness_note(row)]))
    if not found.margins:
        return f"{text} · the only {'exact ' if found.inexact else ''}one"
    if row is ranked[0]:
        word = "fastest" if found.clear else "tie" if found.tied else NOT_DECIDED
        return f"{text}{ASIDE}{word}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    margin = next(margin for other, margin in found.pairs if other["case"] == row["case"])
    return ASIDE.join([text, margin.short, *([] if margin.clear else [margin.word])])
