"""Which form of latent attention is faster, by the number of queries, and where FLOPs say so."""

from collections.abc import Sequence
from itertools import starmap
from math import floor, sqrt
from typing import NamedTuple

from ..data.polynomial import through
from ..data.row_groups import AXES, Row, by, case_key, distinguishing_axes, is_timed, label, problem
from ..data.run_meta import Meta
from ..elements import note, table_of
from ..judging.over import paired
from ..judging.ratio import Ratio
from ..quantity import Quantity
from . import Subject
from ._crossovers import Crossover

TITLE = "Forms of latent attention"
SECTION = "asked"
ORDER = 18
NEEDS = ("latent", "configuration", "latency_ms")
ABSORBED, UNABSORBED = "absorbed", "unabsorbed"


class Forms(NamedTuple):
    """Both forms of one problem at one number of queries; `time`: unabsorbed over absorbed."""

    unabsorbed: Row
    absorbed: Row
    time: Ratio

    @property
    def queries(self) -> int:
        return int(self.absorbed["seq_len"])

    @property
    def flops_ratio(self) -> float:
        return _flops(self.unabsorbed) / _flops(self.absorbed)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = comparisons(rows)
    if not found:
        return Subject(lacking="No latent cache was read in both forms.")
    first = [some[0].absorbed for some in found]
    axes = [axis for axis in distinguishing_axes(first) if axis != "seq_len"]
    table = table_of(
        "Forms of latent attention by the number of queries",
        [one for some in found for one in some],
        {
            "problem": lambda one: label(problem(one.absorbed), axes),
            "queries": lambda one: Quantity(one.queries, "count"),
            ABSORBED: lambda one: Quantity(one.absorbed["latency_ms"], "ms"),
            UNABSORBED: lambda one: Quantity(one.unabsorbed["latency_ms"], "ms"),
            "over absorbed": lambda one: one.time.marked,
            "FLOPs over absorbed": lambda one: Quantity(one.flops_ratio, "ratio"),
        },
        case=lambda one: case_key(one.unabsorbed),
        optional=("problem",),
    )
    how = note(
        "Absorbed: the projections to keys and values are applied to queries and outputs, and all"
        " heads read the latent. Unabsorbed: every head's keys and values are made first. N is the"
        " number of queries."
    )
    named = [(label(problem(some[0].absorbed), axes), some) for some in found]
    lines = tuple(f"{finding(some)}{f' ({text})' if text else ''}." for text, some in named)
    return Subject(lines=lines, blocks=(how, table))


def comparisons(rows: Sequence[Row]) -> list[list[Forms]]:
    """Problems that differ in more than the number of queries, each by that number."""
    timed = [row for row in rows if is_timed(row) and row.get("latent") and _form(row)]
    apart = [axis for axis in AXES if axis not in ("seq_len", "causal_align")]
    on = [*apart, "seq_len"]
    forms = by({(_form(row), *map(row.get, on)): row for row in timed}.values(), _form)
    pairs = paired(forms.get(UNABSORBED, ()), forms.get(ABSORBED, ()), on)
    found = sorted(starmap(Forms, pairs), key=lambda one: one.queries)
    return [[*some] for some in by(found, lambda one: (*map(one.absorbed.get, apart),)).values()]


def finding(some: Sequence[Forms]) -> str:
    """`Making every head's keys and values is faster than reading the latent from N = 64 on (slower
    up to 16, even at about 40); at N = 1 it takes 20 times (18 to 22) the time of the other; at N =
    64 0.80 times (0.75 to 0.85); it has fewer FLOPs above N = 167`.
    """
    turn = Crossover(
        ratios={one.queries: one.time for one in some},
        ignored=[one.queries for one in some if one.time.disturbed],
    )
    told = next((one for one in some if one.queries == turn.start), some[-1])
    text = f"is faster than reading the latent {turn.text('slower', 'even')}"
    if turn.start is None and not turn.holds_at:
        text = f"was not shown to be faster than reading the latent up to N = {told.queries}"
    first, even = some[0], even_by_flops(some)
    text += f"; at N = {first.queries} it takes {first.time.text_to('the other')}"
    text += f"; at N = {told.queries} {told.time.text}" if told is not first else ""
    text += "" if even is None else f"; it has fewer FLOPs above N = {floor(even)}"
    return f"Making every head's keys and values {text}"


def even_by_flops(some: Sequence[Forms]) -> float | None:
    """The number of queries above which the unabsorbed form has fewer FLOPs; None if the counts do
    not say. Their difference is a quadratic polynomial, which falls from 0 queries on.
    """
    over = through({one.queries: _flops(one.unabsorbed) - _flops(one.absorbed) for one in some})
    if over is None or over.off or over.constant <= 0:
        return None
    a, b, c = map(float, (over.quadratic, over.linear, over.constant))
    if b >= 0 or b * b < 4 * a * c:
        return None
    return 2 * c / (sqrt(b * b - 4 * a * c) - b)


def _form(row: Row) -> str:
    """ "" of a backend that does not say both, or says something else."""
    said = row.get("configuration") or {}
    known = said.get("form") in (ABSORBED, UNABSORBED) and isinstance(said.get("form_flops"), int)
    return str(said["form"]) if known else ""


def _flops(row: Row) -> int:
    return int(row["configuration"]["form_flops"])
