"""Which exact backend is fastest on each problem, and how sure that is; every latency over N."""

from collections.abc import Iterator, Sequence
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
from ..elements import ASIDE, Card, Figure, Marked, Table, table_of
from ..formatting import STATUS_WORDS, kernel_text, list_text, more_below, paragraph
from ..judging.pair import time_ratio
from ..words import meaning_of
from . import Subject, kernels
from ._over import MOST_PANELS, Line, by_backend, challenges, latencies, n_text
from ._race import NOT_JUDGED, Race, Raced, alone, how_sure, race, races, surer, verdict
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
    every = [one for one in races(rows) if one.race.ranking]
    table = _every_latency(rows)
    card = _card(rows, every, table, meta)
    shown = isinstance(card.picture, Figure) or card.picture is table
    return Subject(card=card, blocks=() if shown else (table,))


# ---- the card ------------------------------------------------------------------------------------


def _card(rows: list[Row], every: Sequence[Raced], table: Table, meta: Meta) -> Card:
    contested = [one for one in every if one.race.margins]
    judged = [one for one in contested if not one.race.rival[1].disturbed]
    judged = judged if 2 * len(judged) >= len(contested) else []  # as the answer does
    beside_own = own_backends(rows, meta) and len(backends(rows)) == 2  # its card says it
    said = judged if contested else every
    sentence = verdict(max(said, key=lambda one: one.size)) if said else ""
    raced = races(rows)
    compared = kernels.asked(rows, meta)  # on a card of its own
    tabled = contested and len(raced) > 1 and not compared
    decisions = _decisions(raced, contested) if tabled else None
    shown = _drawn(rows)
    inexact = [row for row in rows if row.get("exactness") not in (None, "exact")]
    labels = len({one.group.label for one in contested})
    told = compared or (_is_elsewhere(rows) and not contested)
    alone = None if told else decisions or table
    picture = latencies(shown, sentence, meta, table=table) if shown else alone
    return Card(
        title="Time",
        subtitle="; ".join(("of a call", *filter(None, [one.following for one in shown[:1]]))),
        sentence="" if beside_own else sentence or NOT_JUDGED * bool(contested),
        picture=picture,
        decisions=decisions if shown else None,
        sure=paragraph(how_sure(judged) if judged else "", surer(contested, rows, meta)),
        note=paragraph(
            *_kernels(rows),
            meaning_of({margin.mark for one in contested for _, margin in one.race.pairs}),
            f"Not ranked: {'; '.join(meanings(inexact))}." if inexact else "",
            more_below(labels - MOST_ROWS) if decisions is not None else "",
        ),
        wide=not shown and labels > 1,
    )


def _over_n(rows: Sequence[Row]) -> list[Group]:
    every = over_lengths(rows, following=True)
    return [group for group in every if any(map(is_timed, group.rows))]


def _drawn(rows: Sequence[Row]) -> list[Group]:
    """Of many problems the last one in every run, else the first and the last, which differ most.
    What is compared with dense attention is drawn on that card.
    """
    over_n = _over_n(rows)
    if not over_n or _is_elsewhere(rows):
        return []
    if len(over_n) <= MOST_PANELS:
        return over_n
    last = [one for one in over_n if _in_any_run(one) == _in_any_run(over_n[-1])]
    return last if 1 < len(last) <= MOST_PANELS else [over_n[0], over_n[-1]]


def _is_elsewhere(rows: Sequence[Row]) -> bool:
    """Whether the card of what challenges dense attention draws the latencies."""
    others = [challenges(row) for row in rows if is_timed(row)]
    return any(others) and not all(others)


def _in_any_run(group: Group) -> tuple[object, ...]:
    return tuple(value for axis, value in group.problem.items() if axis != "run")


def _kernels(rows: Sequence[Row]) -> Iterator[str]:
    """Of backends that choose among kernels."""
    for backend, mine in by(filter(is_timed, rows), lambda row: row["backend"]).items():
        ran = {kernel_text(row.get("kernel"), row.get("kernel_generation")) for row in mine} - {""}
        if len(ran) > 1:
            names = list_text(sorted(ran))
            yield f"{backend} used {len(ran)} kernels: {names}; All rows names that of each case."


def _decisions(every: Sequence[Raced], contested: Sequence[Raced]) -> Table:
    """Of each problem and length."""
    labels = {one.group.label: _in_any_run(one.group) for one in contested}
    # runs beside each other
    names = [name for some in by(labels, labels.__getitem__).values() for name in some][:MOST_ROWS]
    lengths = sorted({one.n for one in every})[-MOST_COLUMNS:]
    places = {(one.group.label, one.n): one for one in every}
    if len(lengths) > 1 and len(every) == len({label for label, _ in places}):  # one length each
        shown = contested[:MOST_ROWS]
        return table_of(BY_TIME, shown, {"problem": lambda one: one.place, "fastest": _cell})

    def cell(n: int, label: str) -> Marked | str:
        return _cell(places[label, n]) if (label, n) in places else ""

    of_label = {name or "fastest": partial(cell, label=name) for name in names}
    if len(lengths) == 1 and len(names) > 1:
        (n,) = lengths
        return table_of(BY_TIME, names, {"problem": str, "fastest": lambda name: cell(n, name)})
    table = table_of(BY_TIME, lengths, {"": n_text, **of_label})
    return replace(table, of_two_axes=len(names) > 2)


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
    title = f"Every latency, with its ratio to the fastest; bold: that is confirmed{more}"
    table = by_backend(title, [axis_title(axis) for axis in axes], lines, cell)
    return replace(table, of_two_axes=len(lines) == 1).upright


def beside(row: Row, found: Race) -> str:
    """`58.7 ms · fastest`, `63.1 ms · ×1.08 (0.9 to 1.2) –`, `out of memory`."""
    if row["latency_ms"] is None:
        return STATUS_WORDS[row["status"]] if row["status"] != "ok" else "not timed"
    text, ranked = str(time_of(row)), found.ranking
    if not is_exact(row):
        ratio = time_ratio(row, ranked[0]) if ranked else None
        return ASIDE.join(filter(None, [text, ratio.short if ratio else "", exactness_note(row)]))
    if not found.margins:
        return text
    if row is ranked[0]:
        unjudged = found.rival[1].disturbed
        return f"{text}{ASIDE}{'not judged' if unjudged else f'fastest {found.mark.sign}'}"
    # the paired ratio, as the card and the verdict have it; that of the medians may be far off it
    margin = next(margin for other, margin in found.pairs if other["case"] == row["case"])
    return ASIDE.join([text, margin.marked])
