"""Memory that a backend needs over N, inputs included: how it grows, and where the budget ends it.

Where it ends is computed only if the bytes are an exact polynomial in N that agrees with every
measured peak; else it lies between the longest N that ran and the shortest that did not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from ..data.polynomial import Polynomial, bytes_over_n, through
from ..data.row_groups import AXES, Group, Row, backends, over_lengths, problem
from ..data.run_meta import Meta, budget_bytes
from .max_seq_len import wall_groups
from .memory import other_peaks
from .wall import OUT_OF_MEMORY, MemoryEnd, memory_ends

FEWEST_LENGTHS = 3  # two show no growth
NEAR_EXPONENT = 0.2  # of N^2 or N: bytes without a polynomial that grow so are called by that name

Growth = Literal["quadratic", "linear", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """One backend on one problem over N.

    `rows`: in order of N, those whose need is known and those out of memory. `peak`: the exact
    polynomial of the peak bytes, without inputs. `stop_n`: the longest N that fits; `searched` if
    that was found by trials, else it is computed.
    """

    backend: str
    rows: tuple[Row, ...]
    end: MemoryEnd
    peak: Polynomial | None
    growth: Growth
    stop_n: int | None
    searched: bool = False

    @property
    def stops(self) -> bool:
        return self.stop_n is not None or self.end.first_out is not None

    @property
    def longest_need(self) -> tuple[int, int] | None:
        """The longest N that ran with a measured peak, and the bytes that it needed."""
        found = [(row["seq_len"], need) for row in self.rows if (need := measured_bytes(row))]
        return found[-1] if found else None


def of_twice_the_length(curve: MemoryCurve) -> tuple[int, float] | None:
    """The longest N that ran, and how much more is needed at twice that N, inputs included.

    None without a polynomial: from measured lengths alone nothing is known beyond them.
    """
    known = [(row["seq_len"], need) for row in curve.rows if (need := measured_bytes(row))]
    if not known:
        return None
    n, _ = known[-1]
    inputs = through(
        {row["seq_len"]: row["input_bytes"] for row in curve.rows if row["input_bytes"]}
    )
    if curve.peak is not None and inputs is not None:
        return n, float(
            (curve.peak.at(2 * n) + inputs.at(2 * n)) / (curve.peak.at(n) + inputs.at(n))
        )
    return None


def last_rise(curve: MemoryCurve) -> tuple[int, int, float] | None:
    """The last two N that ran, and how many times the memory the longer one needed."""
    known = [(row["seq_len"], need) for row in curve.rows if (need := measured_bytes(row))]
    if len(known) < 2:
        return None
    (before, less), (n, need) = known[-2:]
    return before, n, need / less


def measured_bytes(row: Row) -> int | None:
    """Inputs and what the call needed; None if it did not run or was not measured."""
    needed, inputs = row.get("needed_bytes"), row.get("input_bytes")
    if row["status"] != "ok" or needed is None or inputs is None:
        return None
    return int(inputs) + int(needed) or None


def need_bytes(row: Row) -> int | None:
    """Inputs and measured need, else inputs and predicted peak; None if neither is known."""
    measured = measured_bytes(row)
    if measured is not None:
        return measured
    peak, inputs = row.get("predicted_peak_bytes"), row.get("input_bytes")
    return None if peak is None or inputs is None else int(inputs) + int(peak) or None


def families(rows: Sequence[Row]) -> list[dict[int, Group]]:
    """Problems over at least three lengths, by number of heads, otherwise equal; largest first."""
    found: dict[tuple[Any, ...], dict[int, Group]] = {}
    for group in over_lengths(row for row in rows if (row["seq_len"] or 0) > 0):
        heads = group.problem["heads"]
        if heads is not None and len(group.lengths) >= FEWEST_LENGTHS and _known(group):
            equal = tuple(value for axis, value in group.problem.items() if axis != "heads")
            found.setdefault(equal, {})[heads] = group
    return sorted(found.values(), key=lambda family: -sum(map(_known, family.values())))


def _known(group: Group) -> int:
    return sum(need_bytes(row) is not None for row in group.rows)


def memory_curves(group: Group, meta: Meta) -> list[MemoryCurve]:
    """Every backend of a problem over N of which some need is known or that ran out of memory."""
    run = meta[group.problem["run"]]
    budget, searched = budget_bytes(run), _searched(group, meta)
    ends = {end.backend: end for end in memory_ends(group)}
    found = []
    for backend in backends(group.rows):
        rows = [
            row
            for row in group.of_backend(backend)
            if need_bytes(row) is not None or row["status"] in OUT_OF_MEMORY
        ]
        if not rows:
            continue
        formula = _exact(rows, backend, "predicted_peak_bytes")
        stop = _crossing(rows, ends[backend], formula, budget)
        peak = formula or _exact(rows, backend, "peak_bytes")
        found.append(
            MemoryCurve(
                backend=backend,
                rows=tuple(rows),
                end=ends[backend],
                peak=peak,
                growth=_growth(rows, peak),
                stop_n=searched.get(backend, stop),
                searched=backend in searched,
            )
        )
    return found


def _searched(group: Group, meta: Meta) -> dict[str, int]:
    """The longest N per backend that a search on this very problem found, if memory ended it."""
    return {
        row["backend"]: row["seq_len_low"]
        for wall in wall_groups(meta)
        for row in wall.rows
        if row.get("limited_by") == "memory"
        and row.get("seq_len_low")
        and _same_problem(problem(row), group.problem)
    }


def _same_problem(wall: Mapping[str, Any], over_n: Mapping[str, Any]) -> bool:
    """But for N. A wall's row has 0 for no window where a case's row has nothing."""
    return all((wall[axis] or None) == (over_n[axis] or None) for axis in AXES if axis != "seq_len")


def _exact(rows: Sequence[Row], backend: str, column: str) -> Polynomial | None:
    """The polynomial of these peaks, if it is exact and agrees with all measured ones."""
    found = bytes_over_n(rows, backend, column)
    return found if found is not None and found.exact and all(map(_agrees, rows)) else None


def _agrees(row: Row) -> bool:
    """The prediction is what was measured, and nothing is needed beside it."""
    if row["status"] != "ok" or row.get("peak_bytes") is None:
        return True
    name = "meta" if row.get("predicted_source") == "meta" else "formula"
    beside = (row.get("needed_bytes") or row["peak_bytes"]) - row["peak_bytes"]
    return not beside and all(other.agrees for other in other_peaks(row) if other.name == name)


def _growth(rows: Sequence[Row], peak: Polynomial | None) -> Growth:
    if peak is not None:
        return "quadratic" if peak.quadratic > 0 else "linear" if peak.linear > 0 else ""
    measured = [(row["seq_len"], row["needed_bytes"]) for row in rows if row.get("needed_bytes")]
    if len(measured) < FEWEST_LENGTHS:
        return ""
    (short, few), (long, many) = measured[-2:]
    exponent = log(many / few) / log(long / short)
    if abs(exponent - 2) <= NEAR_EXPONENT:
        return "quadratic"
    return "linear" if abs(exponent - 1) <= NEAR_EXPONENT else ""


def _crossing(
    rows: Sequence[Row], end: MemoryEnd, peak: Polynomial | None, budget: float | None
) -> int | None:
    """The longest N whose inputs and peak are within the budget."""
    fits, fails = end.longest, end.first_out
    known = {row["seq_len"]: row["input_bytes"] for row in rows if row.get("input_bytes")}
    inputs = through(known)
    if peak is None or inputs is None or budget is None or fits is None or fails is None:
        return None

    def need(n: int) -> Any:
        return peak.at(n) + inputs.at(n)

    if not (max(peak.holds_from, inputs.holds_from) <= fits < fails):
        return None
    if not need(fits) <= budget < need(fails):
        return None
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if need(middle) <= budget else (fits, middle)
    return fits


def same_for_any_heads(curve: MemoryCurve, one_head: Mapping[str, MemoryCurve]) -> bool:
    """The bytes grow with N^2 as with one head: the scores of one head are held at a time."""
    one = one_head.get(curve.backend)
    return bool(
        one
        and curve.peak
        and one.peak
        and curve.peak.quadratic > 0
        and curve.peak.quadratic == one.peak.quadratic
    )
