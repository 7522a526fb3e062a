"""Memory as area: what each backend needs at four N, to scale, and the budget as the frame.

All that the page's script needs to draw it anew for another budget is in its rows.
"""

from bisect import bisect
from collections.abc import Sequence
from fractions import Fraction

from ..areas import AreaRow, Areas
from ..data.polynomial import Polynomial
from ..data.row_groups import Group
from ..data.run_meta import Meta, budget_bytes, finite_number
from ..formatting import list_text, plural, size_text
from ._memory_over_n import MemoryCurve, memory_curves
from ._over import n_text

TITLE = "Memory is area: twice the length, four times the square"
MARKS = (128 << 20, 24 << 30, 80 << 30, 141 << 30)  # budgets beside the run's own
PARTS = (8, 4, 2, 1)  # of the last N that is drawn
MOST_AREA = 9  # frames
MOST_ROWS = 3
FEWEST_HEADS = 4  # with which bytes tell one head's scores, in two or three copies, from all
MOST_N = 1 << 40
LEAST_RATIO = 1.1  # of the card to the budget: below it the run's own wall is that of the card


def areas_of(shown: Sequence[Group], meta: Meta) -> Areas | None:
    """Of the first of these problems, which has the most heads; the last may tell what one needs.

    None without a budget that a backend reaches, or without a formula of N².
    """
    group, budget = shown[0], budget_bytes(meta[shown[0].problem["run"]])
    every = memory_curves(group, meta)
    curves, first = [one for one in every if one.measured], max(group.lengths)
    if not budget or first % PARTS[0] or not any(one.stops for one in every):
        return None
    needs = {one.backend: need for one in curves if (need := _formula(one, budget))}
    if all(need.quadratic <= 0 for need in needs.values()):
        return None
    last = lengths_within(first, [*needs.values()], budget)[-1]
    single = memory_curves(shown[-1], meta) if shown[-1].problem["heads"] == 1 else ()
    alone = {one.backend: one.peak.quadratic for one in single if one.peak}
    rows = [_row(one, alone.get(one.backend), group, budget) for one in curves]
    rows.sort(key=lambda one: -(one.at(last) or 0))
    rows = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS - 1], rows[-1]]
    drawn = [needs[one.backend] for one in rows if one.backend in needs]
    if all(need.quadratic <= 0 for need in drawn):
        return None
    return Areas(
        title=TITLE,
        budget=int(budget),
        budgets=MARKS,
        longest=first,
        lengths=lengths_within(first, drawn, budget),
        rows=tuple(rows),
    )


def lengths_within(first: int, formulas: Sequence[Polynomial], budget: float) -> tuple[int, ...]:
    """Of which the last has the largest area that a page has room for."""

    def is_small(n: int) -> bool:
        return all(one.at(n) <= MOST_AREA * budget for one in formulas)

    while not is_small(first) and first % (2 * PARTS[0]) == 0:
        first //= 2
    while is_small(2 * first):
        first *= 2
    return tuple(first // part for part in PARTS)


def _row(curve: MemoryCurve, alone: Fraction | None, group: Group, budget: float) -> AreaRow:
    need = _formula(curve, budget)
    fits = [n for n, size in curve.measured if size <= budget]
    n = curve.stop_n or (longest(need, budget) if need else max(fits, default=0))
    squares, keeps = _kept(curve, alone, group)
    words = "up to" if need or curve.stop_n else "at least"
    return AreaRow(
        backend=curve.backend,
        keeps=keeps,
        squares=squares,
        ends=f"{words} {n_text(n)}" if n else "nothing fits",
        known=dict(curve.measured),
        need=need.integers if need else None,
        least_n=need.holds_from if need else 1,
    )


def _formula(curve: MemoryCurve, budget: float) -> Polynomial | None:
    """If no case that ran or ran out of memory contradicts it."""
    need = curve.need if curve.peak else None
    if need is None or any(
        n is not None and (need.at(n) <= budget) is not fits
        for n, fits in ((curve.longest, True), (curve.first_out, False))
    ):
        return None
    return need


def _kept(curve: MemoryCurve, alone: Fraction | None, group: Group) -> tuple[int, str]:
    """How many heads' score matrices it has at once, by the N² of its bytes against those with one
    head, or against the bytes of one matrix; 0 if they do not grow with N².
    """
    heads, quadratic = group.problem["heads"], curve.peak.quadratic if curve.peak else 0
    if quadratic <= 0:
        return (0, "no score matrix") if curve.growth == "linear" else (1, "")
    if heads == 1:
        return 1, "one head"
    if not alone and heads < FEWEST_HEADS:
        return 1, ""
    item = 4 if group.problem["dtype"] == "fp32" else 2
    every = quadratic >= heads * (alone or item * group.problem["batch"])
    return (heads, f"all {heads} heads at once") if every else (1, "one head at a time")


def longest(need: Polynomial, budget: float) -> int:
    """The longest N that fits by the formula."""
    return bisect(range(1, MOST_N), budget, key=lambda n: float(need.at(n)))


def whole_gpu(group: Group, meta: Meta) -> str:
    """Where the formulas that were right to the byte meet all memory of the GPU; "" on a CPU,
    without formulas, or if the run used all of it.
    """
    run = meta[group.problem["run"]]
    whole_bytes = finite_number(run.get("environment") or {}, "device_memory_bytes") or 0
    if run["device"] != "cuda" or whole_bytes < LEAST_RATIO * (budget_bytes(run) or 0):
        return ""
    ends = sorted(
        (longest(one.need, whole_bytes), one.backend)
        for one in memory_curves(group, meta)
        if one.need is not None and one.peak is not None and one.need.quadratic > 0
    )
    heads, size = plural(group.problem["heads"], "head"), size_text(int(whole_bytes))
    texts = [f"{n_text(n)} for {backend}" for n, backend in ends]
    return f"Calculated for the whole GPU ({size}, {heads}): {list_text(texts)}." if texts else ""
