"""A step of a backward kernel in the order of its code, and when blocks that share an SM run it.

The row's `loop_parts` have the order. Blocks queue for two things: the tensor cores, and all else
(exponentials and the issue of instructions); each serves one at a time, first come, first served.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from ..data.row_groups import Row
from .kernel_limits import PICTURED
from .kernel_step import Step, preference, step

BACKWARD = ("grad_q", "grad_kv")
# The matrix products of a step in the kernels' order, each with the width that it grows with.
PRODUCTS = {
    "grad_q": (("QKᵀ", "d_k"), ("dO Vᵀ", "d_v"), ("dS K", "d_k")),
    "grad_kv": (("KQᵀ", "d_k"), ("Pᵀ dO", "d_v"), ("V dOᵀ", "d_v"), ("dSᵀ Q", "d_k")),
}
# The products that the weights P, and the gradient dS of the scores, wait for.
WAITED_FOR = {"grad_q": ("QKᵀ", "dO Vᵀ"), "grad_kv": ("KQᵀ", "V dOᵀ")}
TOLERANCE = 0.01  # of all products, for a part to hold whole ones
SHORT = 0.1  # of the code between products: too little to be named
SETTLED, DRAWN = 16, 6  # steps until the order repeats, and those that are averaged and drawn
MOST_PARTS = 64  # a serialized loop has one for each product
Unit = Literal["product", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Products and the code that waits for them, in cycles of a team; a label may be empty."""

    products: str
    product_cycles: float
    code: str
    code_cycles: float
    exponential_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A team's use of a unit. `step`: its number, 0 for the first that is drawn."""

    unit: Unit
    start: float
    end: float
    label: str
    step: int
    exponential_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """`teams`: what each team runs. `period`: cycles from one step of a team to the next one."""

    parts: tuple[Part, ...]
    teams: tuple[tuple[Run, ...], ...]
    period: float
    busy_ratio: float


def backward(rows: Iterable[Row]) -> list[Row]:
    """By width and kernel: the one that is tried first, of those whose order is known.

    In bf16 if there is such a one.
    """
    best: dict[tuple[int, str], Row] = {}
    for row in sorted(rows, key=lambda row: (row["dtype"] != "bf16", preference(row))):
        usual = row["d_k"] == row["d_v"] and row["d_k"] in PICTURED
        if usual and row["kernel"] in BACKWARD and order(row):
            best.setdefault((row["d_k"], row["kernel"]), row)
    return [best[key] for key in sorted(best, key=lambda key: (key[0], BACKWARD.index(key[1])))]


def order(row: Row) -> Order | None:
    """None without the cycles and parts of a step, or if its products run beside other code."""
    one = step(row)
    if one is None or one.overlaps or one.is_specialized or row["kernel"] not in PRODUCTS:
        return None
    found = parts(row, one)
    return scheduled(found, one.teams) if found else None


def parts(row: Row, one: Step) -> tuple[Part, ...]:
    """Empty if the row has none. The code takes as long as the bound has it take in all."""
    given = row.get("loop_parts")
    names = ("tensor_cycles", "exponential_cycles", "issue_cycles")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_PARTS:
        return ()
    if not all(isinstance(part, dict) and all(map(part.__contains__, names)) for part in given):
        return ()
    cycles = [tuple(part[name] for name in names) for part in given]
    if not all(_is_cycles(count) for part in cycles for count in part):
        return ()
    code = [max(exponentials, issue) for _, exponentials, issue in cycles]
    products = [tensor for tensor, *_ in cycles]
    if not sum(code) or not sum(products):
        return ()
    scale = one.team_warps * one.softmax / sum(code)
    labels = _product_labels(row, products)
    code_labels = _code_labels(row, labels, [part[1] for part in cycles])
    found: list[Part] = []
    for place, (tensor, exponentials, _) in enumerate(cycles):
        is_short = code[place] < SHORT * sum(code)
        found.append(
            Part(
                products=labels[place],
                product_cycles=one.team_warps * tensor,
                code="" if is_short else code_labels[place],
                code_cycles=scale * code[place],
                exponential_cycles=min(scale * code[place], one.team_warps * exponentials),
            )
        )
    return tuple(found)


def _is_cycles(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def _product_labels(row: Row, cycles: Sequence[float]) -> list[str]:
    """Each part's products by their formulas, if it holds whole ones; else "products"."""
    known = PRODUCTS[row["kernel"]]
    whole = sum(row[width] for _, width in known)
    ends, end = [], 0.0
    for _, width in known:
        end += row[width] / whole
        ends.append(end)
    labels, done, before = [], 0, 0.0
    for part in cycles:
        before += part / sum(cycles)
        until = next((n for n, at in enumerate(ends, 1) if abs(at - before) < TOLERANCE), None)
        if until is None or until <= done:
            return ["products"] * len(cycles)
        labels.append(", ".join(name for name, _ in known[done:until]))
        done = until
    return labels


def _code_labels(row: Row, labels: Sequence[str], exponentials: Sequence[float]) -> list[str]:
    """What the code behind each part's products computes: P where most exponentials are, dS where
    it can first; compilers may move P behind the products that dS waits for.
    """
    scores, gradient = WAITED_FOR[row["kernel"]]
    holds = [label.split(", ") for label in labels]
    first = next((at for at, names in enumerate(holds) if scores in names), None)
    later = next((at for at, names in enumerate(holds) if gradient in names), None)
    found: list[list[str]] = [[] for _ in labels]
    if first is not None and later is not None:
        most = max(range(len(labels)), key=lambda at: exponentials[at])
        if most >= first:
            found[most].append("P")
        found[max(later, most)].append("dS")
    return [", ".join(names) for names in found]


def scheduled(found: tuple[Part, ...], teams: int) -> Order:
    """The steps of `teams` blocks, from when their order repeats."""
    free: dict[Unit, float] = {"product": 0.0, "softmax": 0.0}
    runs: list[list[Run]] = [[] for _ in range(teams)]
    waiting = [(0.0, team, 0) for team in range(teams)]  # since when, who, for which piece
    pieces = [piece for part in found for piece in _pieces(part)]
    last = (SETTLED + 2 * DRAWN) * len(pieces)
    while waiting:
        since, team, number = heappop(waiting)
        unit, cycles, label, exponentials = pieces[number % len(pieces)]
        start = max(since, free[unit])
        free[unit] = start + cycles
        run = Run(
            unit=unit,
            start=start,
            end=start + cycles,
            label=label,
            step=number // len(pieces) - SETTLED,
            exponential_cycles=exponentials,
        )
        runs[team].append(run)
        if number + 1 < last:
            heappush(waiting, (run.end, team, number + 1))
    begin, later = (runs[0][at * len(pieces)].start for at in (SETTLED, SETTLED + DRAWN))
    period = (later - begin) / DRAWN
    products = teams * sum(part.product_cycles for part in found)
    return Order(
        parts=found,
        teams=tuple(tuple(_from(begin, run) for run in of_team) for of_team in runs),
        period=period,
        busy_ratio=products / period,
    )


def _pieces(part: Part) -> list[tuple[Unit, float, str, float]]:
    pieces: list[tuple[Unit, float, str, float]] = [
        ("product", part.product_cycles, part.products, 0.0)
    ]
    if part.code_cycles:
        pieces.append(("softmax", part.code_cycles, part.code, part.exponential_cycles))
    return pieces


def _from(begin: float, run: Run) -> Run:
    return Run(
        unit=run.unit,
        start=run.start - begin,
        end=run.end - begin,
        label=run.label,
        step=run.step,
        exponential_cycles=run.exponential_cycles,
    )
