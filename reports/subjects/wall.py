"""The memory wall: the longest N that fits, and memory over N, measured and by formula."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, case_key, groups, over_lengths
from ..data.run_meta import Meta, budget_bytes, caption
from ..elements import Card, Marked, Table, WallChart, WallLine, WallPoint, table_of
from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    count_text,
    length_text,
    list_text,
    number_text,
    plural,
    size_text,
)
from ..quantity import Cell, Number, Quantity
from ..words import SAME_RATIO
from . import Subject
from ._memory_over_n import (
    OUT_OF_MEMORY,
    MemoryCurve,
    families,
    memory_curves,
    need_bytes,
    wall_groups,
)
from ._over import by_backend, lines_over, n_text

TITLE = "Memory wall"
ORDER = 10
NEEDS = ("peak_bytes", "predicted_peak_bytes", "input_bytes")
MOST_CHARTS = 6
MOST_LINES = 3
MOST_CLAUSES = 3  # on backends that still fit
MOST_NAMES = 4  # in one clause of the sentence; the picture has them all
LIMITS = {
    "memory": "memory",
    "time": "time limit",
    "length": "largest supported N",
    "backend": "backend itself",
}
Curves = Mapping[int, Sequence[MemoryCurve]]  # by number of heads


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found, searched = families(rows), wall_groups(meta)
    asked_here = bool(found) and asked(found[0], meta)
    card = memory_card(found, meta, "wall") if asked_here else None
    if not found and searched:
        card = _searched(searched)
    over_n = over_lengths(rows)
    lines = [group.prefixed(_found(group.rows)) for group in searched[0 if asked_here else 1 :]]
    if not asked_here:
        lines += [
            group.prefixed(_ends(memory_curves(group, meta)))
            for group in groups(rows, "seq_len")
            if any(row["status"] in OUT_OF_MEMORY for row in group.rows)
        ]
    others = (memory_card([family], meta, "wall") for family in found[1 : MOST_CHARTS + 1])
    charts = [
        one.picture for one in others if one and asked_here and isinstance(one.picture, WallChart)
    ]
    every = 'every trial up to "fits up to" succeeded, none from "fails from" on'
    tables = [_walls(f"The longest N that fits: {every}", searched, TRIALS)] if searched else []
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


def _has_bytes(row: Row) -> bool:
    return bool(row.get("needed_bytes") or row.get("predicted_peak_bytes"))


def _peaks(found: Sequence[Group], *, folded: bool) -> Table:
    """Every peak over N, without the inputs that the chart includes."""
    heads, lines = lines_over(found, "seq_len")

    def inputs(rows: Sequence[Row]) -> Cell:
        known = (row.get("input_bytes") for row in rows)
        return Quantity(next((size for size in known if size is not None), None), "bytes")

    return by_backend(
        "Peak bytes of a call, without inputs and weights (predictions in brackets)",
        (*heads, "inputs"),
        [((*cells, inputs(rows)), rows) for cells, rows in lines],
        lambda row, _: _peak(row),
        folded=folded,
    )


def _peak(row: Row) -> Marked:
    known = row.get("predicted_peak_bytes") is not None
    predicted = f" ({bytes_text(row['predicted_peak_bytes'])})" if known else ""
    beside = (row.get("needed_bytes") or 0) - (row.get("peak_bytes") or 0)
    text = bytes_text(row.get("peak_bytes")) or "not measured"
    text += f" and {bytes_text(beside)} beside it" if beside else ""
    if row["status"] != "ok":
        text = STATUS_WORDS[row["status"]]
    return Marked(cell=Number(text + predicted), case=case_key(row))


# ---- a search for the longest N ------------------------------------------------------------------


def _searched(found: Sequence[Group]) -> Card:
    """The longest N that `attnbench wall` found, of the first problem."""
    group = found[0]
    rows = sorted(group.rows, key=lambda row: -(row.get("seq_len_low") or 0))
    return Card(
        name="wall",
        title="The wall",
        subtitle=f"longest N that fits{f', {group.label}' if group.label else ''}",
        sentence=f"{_found(group.rows)}.",
        picture=_walls("The longest N that fits", [replace(group, rows=rows)], FOUND),
        note=f"{plural(len(found) - 1, 'more problem')} below." if len(found) > 1 else "",
    )


def _walls(title: str, found: Sequence[Group], columns: Sequence[str]) -> Table:
    lines = [(group.label, row) for group in found for row in group.rows]
    cells: dict[str, Callable[[Row], Cell]] = {
        "backend": lambda row: row["backend"],
        "fits up to": lambda row: Quantity(row.get("seq_len_low"), "length"),
        "fails from": lambda row: Quantity(row.get("seq_len_high"), "length"),
        "predicted N": _predicted,
        "prediction is off by": lambda row: (
            "" if (off := _off_ratio(row)) is None else Number(f"{100 * off:+.2f} %")
        ),
        "ended by": _ended_by,
        "note": _note_of,
    }

    def made(cell: Callable[[Row], Cell]) -> Callable[[tuple[str, Row]], Cell]:
        return lambda line: cell(line[1])

    every: dict[str, Callable[[tuple[str, Row]], Cell]] = {"problem": lambda line: line[0]}
    every |= {name: made(cell) for name, cell in cells.items()}
    return table_of(title, lines, {name: every[name] for name in columns})


FOUND = ("backend", "fits up to", "fails from", "predicted N", "ended by")
TRIALS = (
    *("backend", "problem", "predicted N", "fits up to", "fails from"),
    *("prediction is off by", "ended by", "note"),
)


def _found(rows: Sequence[Row]) -> str:
    """One sentence on the walls of one problem, the longest N first."""
    found = sorted(
        (row for row in rows if row.get("seq_len_low")), key=lambda row: -row["seq_len_low"]
    )
    parts = [_found_text(row) for row in found]
    parts += [
        f"{row['backend']}: {STATUS_WORDS[row['status']]}" for row in rows if row not in found
    ]
    budgets = {row["memory_bytes"] for row in found}
    return "; ".join(parts) + (f", under {bytes_text(budgets.pop())}" if len(budgets) == 1 else "")


def _found_text(row: Row) -> str:
    limit, predicted = row["limited_by"], _predicted(row).replace("≥", "at least")
    remarks = [f"predicted {predicted}"] if predicted else []
    if limit is None:  # the search did not come to its end
        remarks.append(f"search ended early: {STATUS_WORDS.get(row['status'], row['status'])}")
    elif limit != "memory":
        remarks.append(f"ended by the {LIMITS.get(limit, limit)}")
    verb = "was tried up to" if limit == "time" else "fits up to"
    text = f"{row['backend']} {verb} {n_text(row['seq_len_low'])}"
    return f"{text} ({', '.join(remarks)})" if remarks else text


def _is_bound(row: Row) -> bool:
    """Whether the formula of another dtype or backend stands in: the prediction is a least N."""
    return row.get("predicted_source") == "nearest"


def _predicted(row: Row) -> str:
    n = row.get("predicted_seq_len")
    return "" if n is None else Number(f"{'≥ ' if _is_bound(row) else ''}{length_text(n)}")


def _off_ratio(row: Row) -> float | None:
    """Predicted over found N, minus 1; None unless memory ended the search, and for a bound."""
    predicted, low = row.get("predicted_seq_len"), row.get("seq_len_low")
    if row.get("limited_by") != "memory" or predicted is None or not low or _is_bound(row):
        return None
    return float(predicted / low - 1)


def _ended_by(row: Row) -> str:
    limit = row.get("limited_by")
    if limit is not None:
        return str(LIMITS.get(limit, limit))
    return "" if row["status"] == "ok" else STATUS_WORDS[row["status"]]


def _note_of(row: Row) -> str:
    """Why there are no numbers, what stopped the backend, or whether the boundary is not sharp."""
    if row["status"] != "ok":
        return f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    notes = []
    fits = [trial["seq_len"] for trial in row["probes"] if trial["status"] == "ok"]
    if max(fits, default=0) > (row.get("seq_len_low") or 0):
        notes.append("some longer N fitted too: the boundary is not sharp")
    if row["limited_by"] == "backend":
        at_end = (one for one in row["probes"] if one["seq_len"] == row.get("seq_len_high"))
        notes += [one["reason"] for one in at_end][:1]
    return "; ".join([*notes, *filter(None, [row.get("predicted_reason")])])


# ---- the card: memory over N ---------------------------------------------------------------------


def memory_card(found: Sequence[dict[int, Group]], meta: Meta, name: str) -> Card | None:
    """Of the first of these families, a panel for most heads and one for fewest.

    None if nothing ran and nothing ran out of memory.
    """
    family = found[0]
    shown = sorted({max(family), min(family)}, reverse=True)
    curves = {heads: memory_curves(family[heads], meta) for heads in shown}
    every = [curve for some in curves.values() for curve in some]
    if not any(curve.measured or curve.stops for curve in every):
        return None
    most, group = shown[0], family[shown[0]]
    budget = budget_bytes(meta[group.problem["run"]])
    size = None if budget is None else int(budget)
    sentence = _sentence(most, curves, size)
    others = [part for part in group.label.split(", ") if part != f"h\u00a0=\u00a0{most}"]
    ends = [f"With {plural(heads, 'head')}: {_ends(some)}." for heads, some in curves.items()]
    within = f", against a budget of {bytes_text(size)}" if size else ""
    return Card(
        name=name,
        title="The wall" if any(one.stops for one in curves[most]) else "Memory over N",
        subtitle=", ".join(
            (
                "memory needed: inputs + peak",
                *([f"budget {bytes_text(size)}"] if size else []),
                *(others if len(found) > 1 else []),
            )
        ),
        sentence=sentence,
        picture=WallChart(
            panels=tuple(
                (plural(heads, "head"), tuple(map(_line, some))) for heads, some in curves.items()
            ),
            budget_bytes=size,
            description=" ".join(
                [f"Memory needed over sequence length N, both logarithmic{within}.", *ends]
            ),
            table=_table(curves),
            title=sentence,
            caption=caption(group.problem, meta),
        ),
        note=_note(every, len(family) - len(shown), len(found) - 1),
    )


def _line(curve: MemoryCurve) -> WallLine:
    known = curve.stop_n is not None or None in (curve.longest, curve.first_out)
    return WallLine(
        backend=curve.backend,
        points=tuple(map(_point, curve.rows)),
        stop_n=curve.stop_n,
        between=None if known else (curve.longest or 0, curve.first_out or 0),
    )


def _point(row: Row) -> WallPoint:
    status = row["status"]
    measured = status == "ok" and row.get("needed_bytes") is not None
    return WallPoint(
        seq_len=row["seq_len"],
        need_bytes=need_bytes(row),
        end=status if measured or status in OUT_OF_MEMORY else "formula",
        case=case_key(row),
    )


def _sentence(heads: int, curves: Curves, budget: int | None) -> str:
    here = curves[heads]
    stopping = sorted(
        (one for one in here if one.stops),
        key=lambda one: (one.stop_n or one.longest or 0, 0 if one.stop_n else one.first_out or 0),
    )
    free = [one for one in here if not one.stops and one.measured]
    if stopping:
        lead = stopping[0]
    elif free:  # what grows fastest is what the picture is about
        lead = max(free, key=lambda one: (one.growth == "quadratic", one.measured[-1][1]))
        free.remove(lead)
    else:
        return "Nothing ran, and nothing was measured."
    parts = [_needs(lead, heads)]
    if stopping:
        one_head = curves.get(1, []) if heads > 1 else []
        parts.append(_stops(stopping, {curve.backend: curve for curve in one_head}))
    elif lead.peak is not None and lead.growth and lead.longest_need:
        n, size = lead.longest_need
        of = f", of a budget of {bytes_text(budget)}" if budget else ""
        parts.append(f"At {n_text(n)} that is {size_text(size)}{of}.")
    return " ".join(filter(None, [*parts, *_goes_on(free, bool(stopping))]))


def _needs(curve: MemoryCurve, heads: int) -> str:
    """`fused with 8 heads needs 64 N² bytes plus inputs, quadratic in N: twice the length, ...`"""
    if curve.peak is not None and curve.growth:
        size = f"{replace(curve.peak, constant=curve.peak.constant * 0)} bytes plus inputs"
    elif curve.measured:
        n, size_bytes = curve.measured[-1]
        size = f"{size_text(size_bytes)} at {n_text(n)}"
    else:
        return ""
    grows = _grows(curve)
    return f"{curve.backend} with {plural(heads, 'head')} needs {size}{grows and f', {grows}'}."


def _grows(curve: MemoryCurve) -> str:
    """The rule of thumb where it holds between the longest N and its double, else the times.

    Without an exact polynomial only what was measured, and `about quadratic`.
    """
    if not curve.growth:
        return ""
    if curve.peak is None:
        if len(curve.measured) < 2:
            return ""
        (before, less), (n, need) = curve.measured[-2:]
        lengths = f"from {n_text(before)} to {length_text(n)}"
        return f"about {curve.growth}: {number_text(need / less)} times the memory {lengths}"
    usual, words = {"quadratic": (4, "four times"), "linear": (2, "twice")}[curve.growth]
    if curve.twice is None or abs(curve.twice / usual - 1) <= SAME_RATIO:
        return f"{curve.growth}: twice the length, {words} the memory"
    at = n_text(curve.measured[-1][0])
    return (
        f"{curve.growth} in the end: twice {at} takes {number_text(curve.twice)} times the memory"
    )


def _stops(stopping: Sequence[MemoryCurve], one_head: Mapping[str, MemoryCurve]) -> str:
    """`It stops at N = 2 848; naive, one head at a time, at 7 711.`"""
    first, *others = stopping
    same: dict[str, list[str]] = {}
    for curve in others:
        alone = _same_for_any_heads(curve, one_head) and not _same_for_any_heads(first, one_head)
        name = f"{curve.backend}, one head at a time," if alone else curve.backend
        same.setdefault(_where(curve), []).append(name)
    clauses = [f"{list_text(names, MOST_NAMES)} {where}" for where, names in same.items()]
    more = [f"{len(clauses) - MOST_NAMES} more in the picture"] if len(clauses) > MOST_NAMES else []
    stops = f"It stops {_where(first, first=True)}"
    return f"{'; '.join([stops, *clauses[:MOST_NAMES], *more])}."


def _same_for_any_heads(curve: MemoryCurve, one_head: Mapping[str, MemoryCurve]) -> bool:
    """The bytes grow with N^2 as with one head: the scores of one head are held at a time."""
    one = one_head.get(curve.backend)
    if one is None or curve.peak is None or one.peak is None:
        return False
    return curve.peak.quadratic == one.peak.quadratic > 0


def _where(curve: MemoryCurve, *, first: bool = False) -> str:
    n = "N\u00a0=\u00a0" if first else ""
    if curve.stop_n is not None:
        return f"at {n}{length_text(curve.stop_n)}"
    fits, fails = curve.longest, curve.first_out or 0
    if fits is None:
        return f"before {n}{length_text(fails)}"
    if fits > fails:
        return f"at some N from {length_text(fails)} on"
    return f"between {n}{length_text(fits)} and {length_text(fails)}"


def _goes_on(free: Sequence[MemoryCurve], others_stop: bool) -> list[str]:
    """`sdpa grows linearly and still fits at 8 192 with 65 MiB.`"""
    same: dict[tuple[str, bool, int], list[MemoryCurve]] = {}
    for curve in free:
        same.setdefault((curve.growth, curve.peak is None, curve.measured[-1][0]), []).append(curve)
    sentences = []
    for (growth, about, n), some in list(same.items())[:MOST_CLAUSES]:
        sizes = [curve.measured[-1][1] for curve in some]
        size = " to ".join(dict.fromkeys((size_text(min(sizes)), size_text(max(sizes)))))
        s = "s" if len(some) == 1 else ""
        how = {"quadratic": "quadratically", "linear": "linearly", "": ""}[growth]
        grows = f" grow{s} {'about ' if about else ''}{how} and" if how else ""
        names = list_text([curve.backend for curve in some], MOST_NAMES)
        still = "still " if others_stop else ""
        sentences.append(f"{names}{grows} {still}fit{s} at {length_text(n)} with {size}.")
    return sentences


def _ends(curves: Sequence[MemoryCurve]) -> str:
    """Where each line ends: `fused stops at N = 2 848; sdpa needs 65 MiB at N = 8 192`."""
    ends = []
    for curve in curves:
        if curve.stops:
            out = [row for row in curve.rows if row["seq_len"] == curve.first_out]
            tried = curve.stop_n is not None or any(row["status"] == "oom" for row in out)
            predicted = "" if tried else " (predicted)"
            ends.append(f"{curve.backend} stops {_where(curve, first=True)}{predicted}")
        elif curve.longest_need:
            n, size = curve.longest_need
            ends.append(f"{curve.backend} needs {bytes_text(size)} at {n_text(n)}")
    return "; ".join(ends)


def _note(every: Sequence[MemoryCurve], heads_between: int, problems: int) -> str:
    statuses = {row["status"] for curve in every for row in curve.rows}
    computed = any(curve.stop_n is not None and not curve.searched for curve in every)
    parts = {
        "✕ ran out of memory, drawn at the memory it would need.": "oom" in statuses,
        "Hollow ✕: not tried, far over budget.": "predicted_oom" in statuses,
        "Dashed: by formula.": bool(statuses & {*OUT_OF_MEMORY}),
        "Crossings by formula, which matches every measured point.": computed,
        "The longest N was found by trials.": any(curve.searched for curve in every),
        f"{plural(heads_between, 'number')} of heads between are below.": heads_between > 0,
        f"{plural(problems, 'more problem')} below.": problems > 0,
    }
    return " ".join(part for part, is_so in parts.items() if is_so)


def _table(curves: Curves) -> Table:
    columns = {
        f"{curve.backend}, h\u00a0=\u00a0{heads}": {row["seq_len"]: row for row in curve.rows}
        for heads, some in curves.items()
        for curve in some
    }

    def of(known: Mapping[int, Row]) -> Callable[[int], Cell]:
        return lambda n: _need(known[n]) if n in known else ""

    return table_of(
        "Memory needed: inputs and peak (predictions in brackets)",
        sorted({n for known in columns.values() for n in known}),
        {"N": count_text, **{name: of(known) for name, known in columns.items()}},
    )


def _need(row: Row) -> Cell:
    size = bytes_text(need_bytes(row))
    if row["status"] == "ok":
        return Number(size if row.get("needed_bytes") is not None else f"({size})")
    return Number(STATUS_WORDS[row["status"]] + (f" ({size})" if size else ""))
