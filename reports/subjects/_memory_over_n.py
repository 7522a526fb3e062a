"""Memory over N as a card: what each backend needs, how it grows, and the longest N that fits."""

from collections.abc import Sequence

from ..analysis.memory_curves import (
    MemoryCurve,
    last_rise,
    memory_curves,
    need_bytes,
    of_twice_the_length,
    same_for_any_heads,
)
from ..analysis.wall import OUT_OF_MEMORY
from ..data.polynomial import Polynomial, coefficient_text
from ..data.row_groups import Group, Row, case_key
from ..data.run_meta import Meta, budget_bytes, caption
from ..elements import Card, Table, WallChart, WallLine, WallPoint
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
from ..words import SAME_RATIO

MOST_CLAUSES = 3  # on backends that still fit
MOST_NAMES = 4  # in one clause of the sentence; the picture has them all


def memory_card(found: Sequence[dict[int, Group]], meta: Meta, name: str) -> Card | None:
    """Of the first of these families, a panel for most heads and one for fewest.

    None if nothing ran and nothing ran out of memory.
    """
    family = found[0]
    shown = sorted({max(family), min(family)}, reverse=True)
    curves = {heads: memory_curves(family[heads], meta) for heads in shown}
    if not any(curve.longest_need or curve.stops for some in curves.values() for curve in some):
        return None
    most, group = shown[0], family[shown[0]]
    budget = budget_bytes(meta[group.problem["run"]])
    size = None if budget is None else int(budget)
    memory = "memory needed: inputs + peak" + (f", budget {bytes_text(size)}" if size else "")
    which = _problem_text(group, most) if len(found) > 1 else ""
    sentence = _sentence(most, curves, size)
    return Card(
        name=name,
        title="The wall" if any(one.stops for one in curves[most]) else "Memory over N",
        subtitle=f"{memory}{f', {which}' if which else ''}",
        sentence=sentence,
        picture=WallChart(
            panels=tuple(
                (plural(heads, "head"), tuple(map(_line, curves[heads]))) for heads in shown
            ),
            budget_bytes=size,
            description=_description(curves, size),
            table=_table(curves),
            title=sentence,
            caption=caption(group.problem, meta),
        ),
        note=_note(curves, family, len(found)),
    )


def _problem_text(group: Group, heads: int) -> str:
    """What tells the problem from the others, without the heads that the panels name."""
    parts = group.label.split(", ")
    return ", ".join(part for part in parts if part != f"h\u00a0=\u00a0{heads}")


def _line(curve: MemoryCurve) -> WallLine:
    end = curve.end
    known = curve.stop_n is not None or None in (end.longest, end.first_out)
    return WallLine(
        backend=curve.backend,
        points=tuple(map(_point, curve.rows)),
        stop_n=curve.stop_n,
        between=None if known else (end.longest or 0, end.first_out or 0),
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


def _sentence(heads: int, curves: dict[int, list[MemoryCurve]], budget: int | None) -> str:
    here = curves[heads]
    one_head = {curve.backend: curve for curve in curves.get(1, [])} if heads > 1 else {}
    stopping = sorted((one for one in here if one.stops), key=_stop_at)
    free = [one for one in here if not one.stops and one.longest_need]
    if stopping:
        subject = stopping[0]
    elif free:  # what grows fastest is what the picture is about
        subject = max(
            free, key=lambda one: (one.growth == "quadratic", (one.longest_need or (0, 0))[1])
        )
        free.remove(subject)
    else:
        return "Nothing ran, and nothing was measured."
    parts = [_needs(subject, heads)]
    if stopping:
        parts.append(_stops(stopping, one_head))
    elif subject.peak is not None and subject.growth and subject.longest_need:
        n, size = subject.longest_need
        of = f", of a budget of {bytes_text(budget)}" if budget else ""
        parts.append(f"At N\u00a0=\u00a0{length_text(n)} that is {size_text(size)}{of}.")
    return " ".join(filter(None, [*parts, *_goes_on(free, bool(stopping))]))


def _needs(curve: MemoryCurve, heads: int) -> str:
    """`fused with 8 heads needs 64 N² bytes plus inputs, quadratic in N: twice the length, ...`"""
    name = f"{curve.backend} with {plural(heads, 'head')}"
    grows = _grows(curve)
    if curve.peak is not None and grows:
        return f"{name} needs {_leading(curve.peak)} bytes plus inputs, {grows}."
    size = curve.longest_need
    if size is None:
        return ""
    needs = f"{name} needs {size_text(size[1])} at N\u00a0=\u00a0{length_text(size[0])}"
    return f"{needs}, {grows}." if grows else f"{needs}."


def _grows(curve: MemoryCurve) -> str:
    """The rule of thumb where it holds between the longest N and its double, else the times.

    Without an exact polynomial only what was measured, and `about quadratic`.
    """
    if not curve.growth:
        return ""
    if curve.peak is None:
        rise = last_rise(curve)
        if rise is None:
            return ""
        before, n, times = rise
        lengths = f"from N\u00a0=\u00a0{length_text(before)} to {length_text(n)}"
        return f"about {curve.growth}: {number_text(times)} times the memory {lengths}"
    usual, words = {"quadratic": (4, "four times"), "linear": (2, "twice")}[curve.growth]
    known = of_twice_the_length(curve)
    if known is None or abs(known[1] / usual - 1) <= SAME_RATIO:
        return f"{curve.growth}: twice the length, {words} the memory"
    at = f"N\u00a0=\u00a0{length_text(known[0])}"
    return f"{curve.growth} in the end: twice {at} takes {number_text(known[1])} times the memory"


def _leading(peak: Polynomial) -> str:
    """`8 N² + 1 792 N`: the terms that grow."""
    terms = [(peak.quadratic, "N²"), (peak.linear, "N")]
    texts = [
        f"{'− ' if value < 0 else '+ ' if place else ''}{_coefficient(abs(value))}\u00a0{power}"
        for place, (value, power) in enumerate(terms)
        if value
    ]
    return " ".join(texts).removeprefix("+ ")


def _coefficient(value: object) -> str:
    text = coefficient_text(value)  # type: ignore[arg-type]
    return length_text(int(text)) if text.isdigit() else text


def _stop_at(curve: MemoryCurve) -> tuple[int, int]:
    if curve.stop_n is not None:
        return curve.stop_n, 0
    return curve.end.longest or 0, curve.end.first_out or 0


def _stops(stopping: Sequence[MemoryCurve], one_head: dict[str, MemoryCurve]) -> str:
    """`It stops at N = 2 848; naive, one head at a time, at 7 711.`"""
    first, *others = stopping
    clauses = [f"It stops {_where(first, first=True)}"]
    same: dict[str, list[str]] = {}
    for curve in others:
        alone = same_for_any_heads(curve, one_head) and not same_for_any_heads(first, one_head)
        name = f"{curve.backend}, one head at a time," if alone else curve.backend
        same.setdefault(_where(curve), []).append(name)
    shown = list(same.items())[:MOST_NAMES]
    clauses += [f"{_names(names)} {where}" for where, names in shown]
    if left := len(same) - len(shown):
        clauses.append(f"{left} more in the picture")
    return f"{'; '.join(clauses)}."


def _where(curve: MemoryCurve, *, first: bool = False) -> str:
    n = "N\u00a0=\u00a0" if first else ""
    if curve.stop_n is not None:
        return f"at {n}{length_text(curve.stop_n)}"
    fits, fails = curve.end.longest, curve.end.first_out or 0
    if fits is None:
        return f"before {n}{length_text(fails)}"
    if fits > fails:
        return f"at some N from {length_text(fails)} on"
    return f"between {n}{length_text(fits)} and {length_text(fails)}"


def _goes_on(free: Sequence[MemoryCurve], others_stop: bool) -> list[str]:
    """`sdpa grows linearly and still fits at 8 192 with 65 MiB.`"""
    same: dict[tuple[str, bool, int], list[MemoryCurve]] = {}
    for curve in free:
        n, _ = curve.longest_need or (0, 0)
        same.setdefault((curve.growth, curve.peak is not None, n), []).append(curve)
    sentences = []
    for (growth, is_exact, n), some in list(same.items())[:MOST_CLAUSES]:
        sizes = sorted((curve.longest_need or (0, 0))[1] for curve in some)
        low, high = size_text(sizes[0]), size_text(sizes[-1])
        size = low if low == high else f"{low} to {high}"
        names = _names([curve.backend for curve in some])
        s = "s" if len(some) == 1 else ""
        how = {"quadratic": "quadratically", "linear": "linearly", "": ""}[growth]
        grows = f"grow{s} {'' if is_exact else 'about '}{how}" if how else ""
        fits = f"{'still ' if others_stop else ''}fit{s} at {length_text(n)} with {size}"
        sentences.append(f"{names} {grows} and {fits}." if grows else f"{names} {fits}.")
    return sentences


def _names(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return list_text(list(names))
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"


def _description(curves: dict[int, list[MemoryCurve]], budget: int | None) -> str:
    """For screen readers: where each line ends."""
    panels = []
    for heads, some in curves.items():
        ends = []
        for curve in some:
            if curve.stops:
                ends.append(f"{curve.backend} stops {_where(curve, first=True)}")
            elif curve.longest_need:
                n, size = curve.longest_need
                ends.append(f"{curve.backend} needs {bytes_text(size)} at N = {length_text(n)}")
        panels.append(f"With {plural(heads, 'head')}: {'; '.join(ends)}.")
    within = f", against a budget of {bytes_text(budget)}" if budget else ""
    return " ".join([f"Memory needed over sequence length N, both logarithmic{within}.", *panels])


def _note(curves: dict[int, list[MemoryCurve]], family: dict[int, Group], problems: int) -> str:
    every = [curve for some in curves.values() for curve in some]
    statuses = {row["status"] for curve in every for row in curve.rows}
    parts = []
    if "oom" in statuses:
        parts.append("✕ ran out of memory, drawn at the memory it would need.")
    if "predicted_oom" in statuses:
        parts.append("Hollow ✕: not tried, far over budget.")
    if len(statuses & set(OUT_OF_MEMORY)):
        parts.append("Dashed: by formula.")
    if any(curve.stop_n is not None and not curve.searched for curve in every):
        parts.append("Crossings by formula, which matches every measured point.")
    if any(curve.searched for curve in every):
        parts.append("The longest N was found by trials.")
    if len(family) > 2:
        parts.append(f"{plural(len(family) - 2, 'number')} of heads between are below.")
    if problems > 1:
        parts.append(f"{plural(problems - 1, 'more problem')} below.")
    return " ".join(parts)


def _table(curves: dict[int, list[MemoryCurve]]) -> Table:
    columns = [(heads, curve) for heads, some in curves.items() for curve in some]
    cells = [{row["seq_len"]: _cell(row) for row in curve.rows} for _, curve in columns]
    lengths = sorted({n for known in cells for n in known})
    return Table(
        title="Memory needed: inputs and peak (predictions in brackets)",
        columns=("N", *(f"{curve.backend}, h\u00a0=\u00a0{heads}" for heads, curve in columns)),
        rows=tuple((count_text(n), *(known.get(n, "") for known in cells)) for n in lengths),
    )


def _cell(row: Row) -> str:
    size = bytes_text(need_bytes(row))
    if row["status"] == "ok":
        return size if row.get("needed_bytes") is not None else f"({size})"
    return STATUS_WORDS[row["status"]] + (f" ({size})" if size else "")
