"""Memory that a backend needs over N, inputs included: how it grows, and where the budget ends it.

Where it ends is computed only if the bytes are an exact polynomial in N that agrees with every
measured peak; else it lies between the longest N that ran and the shortest that did not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal

from ...harness.rows.readings import seen_from_bytes
from ..data.polynomial import Polynomial, bytes_over_n, through
from ..data.row_groups import AXES, Group, Row, backends, groups, over_lengths, problem
from ..data.run_meta import OUT_OF_MEMORY, Meta, budget_bytes
from ..formatting import bytes_text

FEWEST_LENGTHS = 3  # two show no growth
NEAR_EXPONENT = 0.2  # of N^2 or N: bytes without a polynomial that grow so are called by that name

Growth = Literal["quadratic", "linear", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """One backend on one problem over N.

    `rows`: in order of N, those whose need is known and those out of memory. `peak`: the exact
    polynomial of the peak bytes, without inputs; `need`: with them. `longest`: the longest N that
    ran; `first_out`: the shortest that ran out of memory. `stop_n`: the longest N that fits;
    `searched` if that was found by trials, else it is computed.
    """

    backend: str
    rows: tuple[Row, ...]
    longest: int | None
    first_out: int | None
    peak: Polynomial | None
    need: Polynomial | None
    growth: Growth
    stop_n: int | None
    searched: bool = False

    @property
    def stops(self) -> bool:
        return self.stop_n is not None or self.first_out is not None

    @property
    def measured(self) -> list[tuple[int, int]]:
        """Every N that ran with a measured peak, and the bytes that it needed."""
        return [(row["seq_len"], need) for row in self.rows if (need := measured_bytes(row))]

    @property
    def longest_need(self) -> tuple[int, int] | None:
        return self.measured[-1] if self.measured else None

    @property
    def twice(self) -> float | None:
        """How many times as much twice the longest measured N needs, inputs included.

        None without a polynomial: from measured lengths alone nothing is known beyond them.
        """
        if self.need is None or self.longest_need is None:
            return None
        n = self.longest_need[0]
        return float(self.need.at(2 * n) / self.need.at(n))


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
    budget, searched = budget_bytes(meta[group.problem["run"]]), _searched(group, meta)
    found = [
        _curve(backend, group.of_backend(backend), budget, searched.get(backend))
        for backend in backends(group.rows)
    ]
    return [curve for curve in found if curve.rows]


def _curve(
    backend: str, every: Sequence[Row], budget: float | None, searched: int | None
) -> MemoryCurve:
    out = [row["seq_len"] for row in every if row["status"] in OUT_OF_MEMORY]
    rows = [row for row in every if need_bytes(row) is not None or row["seq_len"] in out]
    longest = max((row["seq_len"] for row in every if row["status"] == "ok"), default=None)
    exact = {
        column: found
        for column in ("predicted_peak_bytes", "peak_bytes")
        if (found := bytes_over_n(rows, backend, column)) and found.exact
        if all(map(_agrees, rows))
    }
    column = next(iter(exact), "")
    sums = (row for row in rows if row.get("input_bytes") and row.get(column) is not None)
    need = through({row["seq_len"]: row["input_bytes"] + int(row[column]) for row in sums})
    is_formula = column == "predicted_peak_bytes"
    stop = _crossing(longest, min(out, default=None), need if is_formula else None, budget)
    return MemoryCurve(
        backend=backend,
        rows=tuple(rows),
        longest=longest,
        first_out=min(out, default=None),
        peak=exact.get(column),
        need=need,
        growth=_growth(rows, exact.get(column)),
        stop_n=stop if searched is None else searched,
        searched=searched is not None,
    )


def wall_groups(meta: Meta) -> list[Group]:
    """Every planned search for the longest N, by problem."""
    walls = (
        {"run": name, "seq_len": None, **wall}
        for name, run in meta.items()
        for wall in run.get("walls", ())
    )
    return groups(walls, None)


def _searched(group: Group, meta: Meta) -> dict[str, int]:
    """The longest N per backend that a search on this very problem found, if memory ended it."""

    def without_n(of: Mapping[str, Any]) -> list[Any]:
        """A wall's row has 0 for no window where a case's row has nothing."""
        return [of[axis] or None for axis in AXES if axis != "seq_len"]

    ended = (row for wall in wall_groups(meta) for row in wall.rows if row.get("seq_len_low"))
    return {
        row["backend"]: row["seq_len_low"]
        for row in ended
        if row.get("limited_by") == "memory" and without_n(problem(row)) == without_n(group.problem)
    }


def _agrees(row: Row) -> bool:
    """The prediction is what was measured, and nothing is needed beside it."""
    if row["status"] != "ok" or row.get("peak_bytes") is None:
        return True
    beside = (row.get("needed_bytes") or row["peak_bytes"]) - row["peak_bytes"]
    return not beside and all(other.agrees for other in other_peaks(row) if other.name == "formula")


def _growth(rows: Iterable[Row], peak: Polynomial | None) -> Growth:
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
    fits: int | None, fails: int | None, need: Polynomial | None, budget: float | None
) -> int | None:
    """The longest N whose inputs and peak are within the budget."""
    if need is None or budget is None or fits is None or fails is None:
        return None
    if not (need.holds_from <= fits < fails and need.at(fits) <= budget < need.at(fails)):
        return None
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if need.at(middle) <= budget else (fits, middle)
    return fits


# ---- other counts of a peak ----------------------------------------------------------------------

# Exact numbers may differ by scalars that torch wraps as tensors, and by 8 bytes per head that
# autograd keeps.
EXACT_BYTES = {"cpu": 64, "cuda": 4096}
HEAD_BYTES = 8
# The kernel counts pages, and small tensors may lie in pages that it counted before: compared only
# for peaks that are large compared with that.
RESIDENT_FROM_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPeak:
    """A second number for a measured peak; it `agrees` within the tolerance of its method."""

    name: str
    size_bytes: int
    agrees: bool


def other_peaks(row: Row) -> list[OtherPeak]:
    """The numbers to compare the measured peak with; none if nothing was measured."""
    measured = row.get("peak_bytes")
    if row["status"] != "ok" or measured is None:
        return []
    exact = EXACT_BYTES.get(row["device"], EXACT_BYTES["cuda"])
    exact += HEAD_BYTES * (row.get("heads") or 0)
    # The oldest runs have no source: their prediction is a formula.
    is_formula = row.get("predicted_source") in (None, "formula")
    by_pages = row.get("peak_source") == "resident pages"
    is_large = measured >= RESIDENT_FROM_BYTES and not by_pages
    resident_slack = seen_from_bytes("cpu", measured)
    numbers = (
        ("formula", row.get("predicted_peak_bytes") if is_formula else None, exact),
        ("resident", row.get("resident_peak_bytes") if is_large else None, resident_slack),
    )
    return [
        OtherPeak(name=name, size_bytes=size, agrees=abs(size - measured) <= slack)
        for name, size, slack in numbers
        if size is not None
    ]


def disagreement(row: Row) -> str:
    """What differs, and how much: `formula 15.8 MiB less, resident 2 MiB more`; "" if all agree."""
    return ", ".join(
        f"{other.name} {bytes_text(abs(other.size_bytes - row['peak_bytes']))}"
        f" {'less' if other.size_bytes < row['peak_bytes'] else 'more'}"
        for other in other_peaks(row)
        if not other.agrees
    )
