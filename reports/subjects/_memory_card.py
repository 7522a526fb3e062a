"""Memory over N as a card: what each backend needs, how it grows, and the longest N that fits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ..data.row_groups import Group, Row, by, case_key
from ..data.run_meta import Meta, budget_bytes, caption
from ..elements import Card, Figure, Marked, Panel, Series, Table
from ..formatting import (
    STATUS_WORDS,
    bytes_text,
    count_text,
    in_brackets,
    length_text,
    list_text,
    paragraph,
    plural,
    size_text,
)
from ..quantity import Cell, Number
from ._memory_over_n import MemoryCurve, measured_bytes, memory_curves, need_bytes
from ._over import by_backend, lines_over, n_text

WALL = "The wall"
MOST_CLAUSES = 3  # on backends that still fit
MOST_NAMES = 4  # in one clause of the sentence; the picture has them all
CROSSES: Sequence[tuple[str, Literal["failed", "untried"], str]] = (
    ("oom", "failed", "out of memory"),
    ("predicted_oom", "untried", "not tried"),
)


def memory_card(found: Sequence[dict[int, Group]], meta: Meta) -> Card | None:
    """Of the first of these families, a panel for fewest heads and one for most.

    None if nothing ran and nothing ran out of memory.
    """
    shown = drawn(found[0])
    curves = {group.problem["heads"]: memory_curves(group, meta) for group in shown}
    every = [curve for some in curves.values() for curve in some]
    if not any(curve.measured or curve.stops for curve in every):
        return None
    group, most = shown[0], shown[0].problem["heads"]
    budget = budget_bytes(meta[group.problem["run"]])
    size = None if budget is None else int(budget)
    sentence = _sentence(most, curves[most], size)
    room = f" against a budget of {bytes_text(size)}" if size else ""
    labels = group.label.split(", ") if len(found) > 1 else []
    others = [part for part in labels if part != f"h\u00a0=\u00a0{most}"]
    return Card(
        title=WALL if any(one.stops for one in curves[most]) else "Memory over N",
        subtitle=", ".join([f"memory needed (inputs + peak){room}", *others]),
        sentence=sentence,
        picture=Figure(
            title=sentence,
            caption=caption(group.problem, meta),
            panels=tuple(
                _panel(plural(heads, "head"), curves[heads], size) for heads in sorted(curves)
            ),
            table=needs_table(shown),
        ),
        wide=len(curves) > 1,
        note=_note(every, sum(map(len, found)) - len(shown)),
    )


def drawn(family: Mapping[int, Group]) -> list[Group]:
    return [family[heads] for heads in sorted({max(family), min(family)}, reverse=True)]


def _panel(title: str, curves: Sequence[MemoryCurve], budget: int | None) -> Panel:
    return Panel(
        title=title,
        x_label="sequence length N",
        y_label="memory needed",
        unit="bytes",
        x_scale="linear",
        y_scale="linear",
        series=tuple(one for curve in curves for one in _series(curve, budget)),
        line=None if budget is None else (budget, bytes_text(budget)),
    )


def _series(curve: MemoryCurve, budget: int | None) -> Iterator[Series]:
    """What was measured is solid; what was not is dashed, up to the crosses of what failed. What
    nobody knows of a case that ran out of memory is drawn at the budget.
    """
    xs = tuple(row["seq_len"] for row in curve.rows)
    ran = [measured_bytes(row) is not None for row in curve.rows]
    needs = [need_bytes(row) for row in curve.rows]
    beside = [not (one and all(ran[max(at - 1, 0) : at + 2])) for at, one in enumerate(ran)]
    longest = curve.longest_need
    fits = size_text(longest[1]) if longest and not curve.stops else ""
    yield Series(
        backend=curve.backend,
        kind="measured",
        x=xs,
        y=tuple(need if one else None for need, one in zip(needs, ran, strict=True)),
        ending=_ends(curve) or fits,
        stop=curve.stop_n if curve.stop_n is not None and curve.stop_n <= xs[-1] else None,
    )
    if not all(ran):
        dashed = tuple(need if one else None for need, one in zip(needs, beside, strict=True))
        yield Series(backend=curve.backend, kind="formula", x=xs, y=dashed)
    for status, kind, why in CROSSES:
        if rows := [row for row in curve.rows if row["status"] == status]:
            yield Series(
                backend=curve.backend,
                kind=kind,
                x=tuple(row["seq_len"] for row in rows),
                y=tuple(need_bytes(row) or budget for row in rows),
                why=why,
            )


def _ends(curve: MemoryCurve) -> str:
    """`up to 2 848`; "" if it does not stop."""
    if curve.stop_n is not None:
        return f"up to {length_text(curve.stop_n)}"
    if curve.longest is None or curve.first_out is None:
        return ""
    return f"up to {count_text(curve.longest)}, not {count_text(curve.first_out)}"


def _sentence(heads: int, here: Sequence[MemoryCurve], budget: int | None) -> str:
    """`fused with 8 heads needs 64 N² bytes plus inputs. It stops at N = 2 848; naive at N = 7 711.
    sdpa still fits at 8 192 with 65 MiB.`
    """
    stopping = sorted(
        (one for one in here if one.stops),
        key=lambda one: (one.stop_n or one.longest or 0, 0 if one.stop_n else one.first_out or 0),
    )
    free = [one for one in here if not one.stops and one.measured]
    if not stopping and not free:
        return "No case ran."
    if stopping:
        lead, still = stopping[0], " still"
    else:  # what grows fastest is what the picture is about
        lead = max(free, key=lambda one: (one.growth == "quadratic", one.measured[-1][1]))
        still = ""
        free.remove(lead)
    of = f" (budget {bytes_text(budget)})" if budget and not stopping else ""
    parts = [_needs(lead, heads, of), _stops(stopping) if stopping else ""]
    for n, some in list(by(free, lambda one: one.measured[-1][0]).items())[:MOST_CLAUSES]:
        sizes = [curve.measured[-1][1] for curve in some]
        size = " to ".join(dict.fromkeys((size_text(min(sizes)), size_text(max(sizes)))))
        names = list_text([curve.backend for curve in some], MOST_NAMES)
        fit = "fits" if len(some) == 1 else "fit"
        parts.append(f"{names}{still} {fit} at {n_text(n)} with {size}.")
    return paragraph(*parts)


def _needs(curve: MemoryCurve, heads: int, of: str) -> str:
    """The formula of its peak, or what it was at the longest N, and how that grows. `of`: of what,
    where it fits.
    """
    who, measured = f"{curve.backend} with {plural(heads, 'head')} needs", ""
    if curve.measured:
        n, size = curve.measured[-1]
        measured = f"{size_text(size)} at {n_text(n)}{of}"
    if curve.peak is None or not curve.growth:
        about = f", about {curve.growth} in N" if curve.growth else ""
        return f"{who} {measured}{about}." if measured else ""
    formula = replace(curve.peak, constant=curve.peak.constant * 0)
    text = f"{who} {formula} bytes plus inputs"
    return f"{text}, {measured}." if measured and not curve.stops else f"{text}."


def _stops(stopping: Sequence[MemoryCurve]) -> str:
    """`It stops at N = 2 848; naive at 7 711.`"""
    first, *others = stopping
    clauses = [
        f"{list_text([one.backend for one in some], MOST_NAMES)} {where}"
        for where, some in by(others, _where).items()
    ]
    more = [f"{len(clauses) - MOST_NAMES} more in the picture"] if len(clauses) > MOST_NAMES else []
    return f"{'; '.join([f'It stops {_where(first)}', *clauses[:MOST_NAMES], *more])}."


def _where(curve: MemoryCurve) -> str:
    if curve.stop_n is not None:
        return f"at {n_text(curve.stop_n)}"
    fits, fails = curve.longest, curve.first_out or 0
    if fits is None or fits > fails:
        return f"{'before' if fits is None else 'at some N from'} {n_text(fails)}"
    return f"between {n_text(fits)} and {length_text(fails)}"


def _note(every: Sequence[MemoryCurve], left: int) -> str:
    """`left`: problems that are not drawn."""
    computed = any(curve.stop_n is not None and not curve.searched for curve in every)
    searched = any(curve.searched for curve in every)
    return paragraph(
        "Circles are computed: the formula equals every measured peak." if computed else "",
        "Trials found the longest N." if searched else "",
        f"{plural(left, 'more problem')} in all rows." if left else "",
    )


def needs_table(found: Sequence[Group]) -> Table:
    """Every length of some problems over N."""
    return by_backend(
        "Memory needed: inputs and peak (predictions in brackets)",
        *lines_over(found, "seq_len"),
        lambda row, _: Marked(cell=_need(row), case=case_key(row)),
    )


def _need(row: Row) -> Cell:
    size = bytes_text(need_bytes(row))
    if row["status"] != "ok":
        return Number(STATUS_WORDS[row["status"]] + in_brackets(size))
    if not size:
        return "not measured"
    return Number(size if row.get("needed_bytes") is not None else f"({size})")
