"""The memory wall: the longest N that fits, and memory over N, measured and by formula."""

from collections.abc import Sequence

from ..analysis.max_seq_len import LIMITS, finding, is_bound, note, off_ratio, wall_groups
from ..analysis.memory_curves import families, memory_curves
from ..analysis.wall import OUT_OF_MEMORY, memory_ends
from ..analysis.wall import finding as ends_finding
from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, backends, case_key, groups, over_lengths
from ..data.run_meta import Meta
from ..elements import Card, Table, WallChart
from ..formatting import STATUS_WORDS, bytes_text, count_text, length_text, plural
from . import Subject
from ._memory_over_n import memory_card

TITLE = "Memory wall"
ORDER = 10
NEEDS = ("peak_bytes", "predicted_peak_bytes", "input_bytes")
MOST_CHARTS = 6
MOST_LINES = 3


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found, searched = families(rows), wall_groups(meta)
    asked_here = bool(found) and asked(found[0], meta)
    card = memory_card(found, meta, "wall") if asked_here else None
    if not found and searched:
        card = _searched(searched)
    over_n = over_lengths(rows)
    lines = [group.prefixed(finding(group.rows)) for group in searched[0 if asked_here else 1 :]]
    if not asked_here:
        lines += [
            group.prefixed(ends_finding(memory_ends(group)))
            for group in groups(rows, "seq_len")
            if any(row["status"] in OUT_OF_MEMORY for row in group.rows)
        ]
    others = (memory_card([family], meta, "wall") for family in found[1 : MOST_CHARTS + 1])
    charts = [
        one.picture for one in others if one and asked_here and isinstance(one.picture, WallChart)
    ]
    tables = [_trials(searched)] if searched else []
    known = [group for group in over_n if any(map(_has_bytes, group.rows))]
    tables += [_peaks(known, folded=bool(found))] if known else []
    return Subject(
        card=card,
        lines=tuple(f"{line}." for line in lines[:MOST_LINES]),
        blocks=(*charts, *tables),
        lacking="There is nothing to draw over N: no problem was planned at more than one N, or no"
        " bytes were measured or predicted.",
    )


def asked(family: dict[int, Group], meta: Meta) -> bool:
    """Whether these runs are about the wall.

    Dense exact attention over N, and a backend that reaches the budget or nothing else to compare.
    What is measured against dense attention (sparse, approximate) is asked from which N on it wins.
    """
    rows = [row for group in family.values() for row in group.rows]
    dense = all(is_exact(row) and row.get("mask") in (None, "none") for row in rows)
    scenario = meta[rows[0]["run"]]["scenario"]
    return dense and (
        not scenario.get("contrast")
        or any(curve.stops for group in family.values() for curve in memory_curves(group, meta))
    )


def _searched(found: Sequence[Group]) -> Card:
    """The longest N that `attnbench wall` found, of the first problem."""
    group = found[0]
    rows = sorted(group.rows, key=lambda row: -(row.get("seq_len_low") or 0))
    return Card(
        name="wall",
        title="The wall",
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{finding(group.rows)}.",
        picture=Table(
            title="The longest N that fits",
            columns=("backend", "fits up to", "fails from", "predicted N", "ended by"),
            rows=tuple(
                (row["backend"], *_lengths(row, "low", "high", "predicted"), _ended_by(row))
                for row in rows
            ),
        ),
        note=f"{plural(len(found) - 1, 'more problem')} below." if len(found) > 1 else "",
    )


def _trials(found: Sequence[Group]) -> Table:
    """The result of the search for the longest N, of every problem."""
    return Table(
        title=(
            'The longest N that fits: every trial up to "fits up to" succeeded, none from "fails'
            ' from" on'
        ),
        columns=(
            *("backend", "problem", "predicted N", "fits up to", "fails from"),
            *("prediction is off by", "ended by", "note"),
        ),
        rows=tuple(
            (
                row["backend"],
                group.label,
                *_lengths(row, "predicted", "low", "high"),
                "" if (off := off_ratio(row)) is None else f"{100 * off:+.2f} %",
                _ended_by(row),
                note(row),
            )
            for group in found
            for row in group.rows
        ),
    )


def _lengths(row: Row, *which: str) -> tuple[str, ...]:
    """The longest N that fits, the shortest that does not, and the predicted one, which may be a
    bound.
    """
    names = {"low": "seq_len_low", "high": "seq_len_high", "predicted": "predicted_seq_len"}
    texts = []
    for one in which:
        n = row.get(names[one])
        least = "\u2265 " if one == "predicted" and is_bound(row) else ""
        texts.append("" if n is None else f"{least}{length_text(n)}")
    return tuple(texts)


def _ended_by(row: Row) -> str:
    limit = row.get("limited_by")
    if limit is not None:
        return str(LIMITS.get(limit, limit))
    return "" if row["status"] == "ok" else STATUS_WORDS[row["status"]]


def _has_bytes(row: Row) -> bool:
    return bool(row.get("needed_bytes") or row.get("predicted_peak_bytes"))


def _peaks(found: Sequence[Group], *, folded: bool) -> Table:
    """Every peak over N, without the inputs that the chart includes."""
    names = backends(row for group in found for row in group.rows)
    lines: list[tuple[str, ...]] = []
    cases: dict[tuple[int, int], str] = {}
    for group in found:
        for n in group.lengths:
            here = {row["backend"]: row for row in group.rows if row["seq_len"] == n}
            known = (row.get("input_bytes") for row in here.values())
            inputs = next((size for size in known if size is not None), None)
            cells = (_peak(here[name]) if name in here else "" for name in names)
            cases |= {(len(lines), 3 + names.index(name)): case_key(here[name]) for name in here}
            lines.append((group.label or "all", count_text(n), bytes_text(inputs), *cells))
    return Table(
        title="Peak bytes of a call, without inputs and weights (predictions in brackets)",
        columns=("problem", "N", "inputs", *names),
        rows=tuple(lines),
        cases=cases,
        folded=folded,
    )


def _peak(row: Row) -> str:
    known = row.get("predicted_peak_bytes") is not None
    predicted = f" ({bytes_text(row['predicted_peak_bytes'])})" if known else ""
    if row["status"] != "ok":
        return STATUS_WORDS[row["status"]] + predicted
    measured = bytes_text(row.get("peak_bytes")) or "not measured"
    beside = (row.get("needed_bytes") or 0) - (row.get("peak_bytes") or 0)
    return measured + (f" and {bytes_text(beside)} beside it" if beside else "") + predicted
