"""Which exact backend is fastest on each problem, and how sure that is; every latency over N."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..data.exactness import exactness_note, is_exact, meanings
from ..data.processor_time import time_of
from ..data.row_groups import (
    Group,
    Row,
    axis_title,
    backends,
    by,
    case_key,
    distinguishing_axes,
    groups,
    is_timed,
    over_lengths,
    value_text,
)
from ..data.run_meta import Meta
from ..deciding import what_decides_ratios
from ..elements import ASIDE, Card, Figure, Marked, Table, table_of
from ..formatting import (
    STATUS_WORDS,
    capital,
    kernel_text,
    length_text,
    list_text,
    more_below,
    paragraph,
    plural,
)
from ..judging.pair import time_ratio
from ..words import meaning_of
from . import Subject, testing_claims
from ._choice import NOT_JUDGED, how_sure
from ._over import MOST_PANELS, Line, by_backend, challenges, latencies, n_text
from ._race import Race, Raced, alone, finding, longest_race, race, races, verdict
from .own import own_backends

TITLE = "Latency"
SECTION = "time"
ORDER = 30
MOST_NAMES = 4
MOST_PROBLEMS = 40  # of the table of all
MOST_ROWS, MOST_COLUMNS = 8, 8
BY_TIME = "The fastest backend, its time, and the next one's as a multiple of it"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card has the latencies over N, and who is fastest where."""
    rows = list(rows)
    if not any(map(is_timed, rows)):
        return Subject(lacking="No case has a latency.")
    every = over_lengths(rows, following=True)
    over_n = [group for group in every if any(map(is_timed, group.rows))]
    raced = [group for group in groups(rows, "seq_len") if longest_race(group)]
    table = _every_latency(rows)
    card = _card(rows, over_n, raced, table, meta)
    # of a single problem at one length the card has all of them
    is_shown = isinstance(card.picture, Figure) or (len(raced) < 2 and not over_n)
    return Subject(card=card, blocks=() if is_shown else (table,))


# ---- the card ------------------------------------------------------------------------------------


def _card(
    rows: list[Row], over_n: list[Group], raced: Sequence[Group], table: Table, meta: Meta
) -> Card:
    every = races(rows)
    contested = [one for one in every if one.race.margins]
    judged = [one for one in contested if not one.race.rival[1].disturbed]
    judged = judged if 2 * len(judged) >= len(contested) else []  # as the answer does
    sentence, decisions = f"{finding(raced[0])}." if raced else "", None
    if contested:
        decisions = _decisions(every, contested)
        beside_own = own_backends(rows, meta) and len(backends(rows)) == 2  # its card says it
        sentence = "" if beside_own else _sentence(judged) if judged else NOT_JUDGED
    open_ones = [one.race.rival[1] for one in contested if one.race.close]
    sure = [f"{how_sure(judged)}." if judged else "", what_decides_ratios(open_ones, rows, meta)]
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    labels = len({one.group.label for one in contested})
    # where something else is compared with dense attention, that card draws them
    others = [challenges(row) for row in rows if is_timed(row)]
    drawn_there = any(others) and not all(others) and not testing_claims(meta)
    # of many problems the last one in every run, else the first and the last, which differ most
    last = [one for one in over_n if _in_any_run(one) == _in_any_run(over_n[-1])]
    shown = last if 1 < len(last) <= MOST_PANELS else [*over_n[:1], *over_n[-1:]]
    shown = over_n if len(over_n) <= MOST_PANELS else shown
    shown = [] if drawn_there else shown
    picture: Figure | Table = decisions or table
    if shown:
        picture = latencies(shown, ". ".join(map(finding, shown)), meta, table=table)
    return Card(
        title="Time",
        subtitle="; ".join(("of a call", *filter(None, [one.following for one in shown[:1]]))),
        sentence=sentence,
        picture=picture,
        decisions=decisions if shown else None,
        sure=paragraph(*sure) if contested else "",
        note=paragraph(
            *_kernels(rows),
            meaning_of({margin.mark for one in contested for _, margin in one.race.pairs}),
            f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
            more_below(labels - MOST_ROWS) if decisions is not None else "",
        ),
        wide=not shown and labels > 1,
    )


def _kernels(rows: Sequence[Row]) -> Iterator[str]:
    """`sdpa ran efficient at h = 1 and cudnn at h = 8.` Of backends that choose among kernels."""
    for backend, mine in by(filter(is_timed, rows), lambda row: row["backend"]).items():
        of = by(mine, lambda row: kernel_text(row.get("kernel"), row.get("kernel_generation")))
        if len(of) > 1 and all(of):
            parts = [f"{kernel}{_where(ran, of.values())}" for kernel, ran in of.items()]
            yield f"{backend} ran {list_text(parts)}."


def _where(ran: Sequence[Row], every: Iterable[Sequence[Row]]) -> str:
    """By the first axis that decides which kernel ran."""
    rows = [row for one in every for row in one]
    for axis in reversed(distinguishing_axes(rows)):
        values = dict.fromkeys(row.get(axis) for row in ran)
        if sum(row.get(axis) in values for row in rows) == len(ran):
            texts = [value_text(axis, value) for value in values]
            return f" at {axis_title(axis)}\u00a0=\u00a0{list_text(texts, MOST_NAMES)}"
    return f" in {len(ran)} of {plural(len(rows), 'case')}"


def _sentence(contested: Sequence[Raced]) -> str:
    """Who is fastest on the largest problem that two backends ran, by how much."""
    largest = max(contested, key=lambda one: one.size)
    others = largest.group.label if len({one.group.label for one in contested}) > 1 else ""
    # a length of 1 is as it is when tokens come one by one
    shown = n_text(largest.n) if largest.n != 1 or not others else ""
    where = ", ".join(filter(None, [shown, others]))
    return f"{capital(verdict(largest.race, where, largest.rows))}."


def _decisions(raced: Sequence[Raced], contested: Sequence[Raced]) -> Table:
    """Lengths downwards and problems across, or problems downwards if there are many; of a single
    race its backends.
    """
    if len(raced) == 1:
        return _ranking(raced[0])
    alike = by(contested, lambda one: _in_any_run(one.group)).values()  # runs beside each other
    labels = list(dict.fromkeys(one.group.label for some in alike for one in some))[:MOST_ROWS]
    lengths = sorted({one.n for one in raced})[-MOST_COLUMNS:]
    places = {(one.group.label, one.n): one for one in raced}

    def cell(n: int, label: str) -> Marked | str:
        return _cell(places[label, n]) if (label, n) in places else ""

    if len(raced) == len({one.group.label for one in raced}) and len(lengths) > 1:
        shown = contested[:MOST_ROWS]
        return table_of(BY_TIME, shown, {"problem": lambda one: one.place, "fastest": _cell})
    if len(labels) <= 2:
        by_label = {label or "fastest": partial(cell, label=label) for label in labels}
        return table_of(BY_TIME, lengths, {"N": length_text, **by_label})
    by_n = {n_text(n) if len(lengths) > 1 else "fastest": partial(cell, n) for n in lengths}
    return replace(table_of(BY_TIME, labels, {"problem": str, **by_n}), of_two_axes=True)


def _in_any_run(group: Group) -> tuple[object, ...]:
    return tuple(value for axis, value in group.problem.items() if axis != "run")


def _ranking(of: Raced) -> Table:
    """All backends of a single problem, those that are not ranked last."""
    found = of.race
    untimed = [row for row in of.rows if not is_timed(row)]
    return table_of(
        "Backends by time, with its ratio to the fastest",
        [*found.ranking, *found.inexact, *untimed],
        {"backend": lambda row: row["backend"], "time": lambda row: beside(row, found)},
        case=case_key,
    )


def _cell(of: Raced) -> Marked | str:
    """`sdpa 8 ms · fused ×1.34 (1.30 to 1.38) ●`, `same: sdpa, fused · 8 ms, ×1.02 (...) =`."""
    found = of.race
    if not found.ranking:
        statuses = {row["status"] for row in of.rows}
        return STATUS_WORDS[statuses.pop()] if len(statuses) == 1 else "none ran"
    first = found.ranking[0]
    time = str(time_of(first))
    parts = [f"{first['backend']} {time}", alone(of.rows, found)]
    if found.margins:
        other, margin = found.rival
        parts[1] = f"{other['backend']} {margin.marked}"
        if margin.disturbed:
            parts = ["not judged", ", ".join(parts)]
        elif found.tied:
            tied = list_text([row["backend"] for row in found.tied], MOST_NAMES)
            parts = [f"same: {tied}", f"{time}, {parts[1]}"]
    return Marked(cell=ASIDE.join(filter(None, parts)), case=case_key(first))


# ---- every latency -------------------------------------------------------------------------------


def _every_latency(rows: list[Row]) -> Table:
    """Every latency with its multiple of the fastest, or why there is none."""
    problems = groups(rows, None)
    axes = distinguishing_axes(rows)
    lines: list[Line] = [
        (tuple(value_text(axis, group.problem[axis]) for axis in axes), group.rows)
        for group in problems[:MOST_PROBLEMS]
    ]

    def cell(row: Row, here: Sequence[Row]) -> Marked:
        found = race(here)
        return Marked(
            cell=beside(row, found),
            strong=found.clear and row is found.ranking[0],
            failed=row["status"] != "ok",
            case=case_key(row),
        )

    left = len(problems) - MOST_PROBLEMS
    more = f" ({left} more problems are in the table of all rows)" if left > 0 else ""
    return by_backend(
        f"Every latency, with its ratio to the fastest; bold: that is confirmed{more}",
        [axis_title(axis) for axis in axes],
        lines,
        cell,
    )


def beside(row: Row, found: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 (0.9 to 1.2) –`, `out of memory`."""
    if row["latency_ms"] is None:
        return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"
    text, ranked = str(time_of(row)), found.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        return ASIDE.join(filter(None, [text, ratio.short if ratio else "", exactness_note(row)]))
    if not found.margins:
        return f"{text} · the only {'exact ' if found.inexact else ''}one"
    if row is ranked[0]:
        unjudged = found.rival[1].disturbed
        return f"{text}{ASIDE}{'not judged' if unjudged else f'fastest {found.mark.sign}'}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    margin = next(margin for other, margin in found.pairs if other["case"] == row["case"])
    return ASIDE.join([text, margin.marked])
