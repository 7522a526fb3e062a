"""Bytes of one call at any length: measured, following from measured ones, by formula or by a wall.

A wall is a length at which memory was seen to end: by a search (`attnbench wall`), or by a case
that ran out of memory. What runs in so many bytes needs no more at shorter lengths, and what runs
out of them needs more at longer ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...harness.files.printable import spaced
from ..data.polynomial import FEWEST, Polynomial, through
from ..formatting import size_text
from .asked import Bytes, Fields, Implementation, Shapes, growing, key_over, length
from .stored import Stored, StoredRows
from .times import last_within

FEWEST_MEASURED = FEWEST + 1  # one length more than a polynomial needs, so that one can agree
REFUSED = ("unavailable", "unsupported")
NOT_KEPT = "no row has bytes that a layer keeps for its backward pass; --measure measures them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """At this length a call with its inputs fits into so many bytes, or does not."""

    length: int
    needed: int
    words: str
    wall: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What rows say of one backend and problem at any length. `searched`: the rows of walls."""

    fits: tuple[Edge, ...]
    fails: tuple[Edge, ...]
    stops: Edge | None
    searched: tuple[Stored, ...]


@dataclass(slots=True)
class CallBytes:
    """Bytes of calls, from rows and formulas."""

    shapes: Shapes
    rows: StoredRows
    _polynomials: dict[Any, Polynomial | None] = field(default_factory=dict)
    _edges: dict[Any, Edges] = field(default_factory=dict)

    def needed(self, implementation: Implementation, problem: Fields) -> Bytes:
        """Of a call and its inputs; walls correct what bytes say, and say it where bytes do not."""
        found = self.counted(implementation, problem)
        edges, n = self.edges(implementation, problem), length(problem)
        if edges.stops is not None and n >= edges.stops.length:
            return Bytes(value=None, words=edges.stops.words, wall=True, refused=True)
        if found.value is None or found.at_most:
            bounds = [edge for edge in edges.fits if edge.length >= n]
            least = min(bounds, key=lambda edge: edge.needed, default=None)
            if least is not None and (found.value is None or least.needed < found.value):
                found = Bytes(value=least.needed, words=least.words, at_most=True, wall=least.wall)
        passed = [edge for edge in edges.fails if edge.length <= n]
        most = max(passed, key=lambda edge: edge.needed, default=None)
        if most is not None and found.value is not None and found.value <= most.needed:
            return Bytes(value=most.needed + 1, words=most.words, wall=True)
        return found

    def counted(self, implementation: Implementation, problem: Fields) -> Bytes:
        """Of a call and its inputs, without walls."""
        inputs = self.shapes.input_bytes(problem)
        measured = self._measured(implementation, problem, _peak)
        if measured is not None:
            return measured.beside(inputs)
        if why := self._why_none(implementation, problem):
            return Bytes(value=None, words=why)
        return self.shapes.predicted_peak(implementation, problem).beside(inputs)

    def kept(self, implementation: Implementation, problem: Fields) -> Bytes:
        """What a layer's attention keeps for the backward pass: q, k and v, and what its forward
        pass leaves.
        """
        inputs = self.shapes.input_bytes({**problem, "passes": "forward"})
        measured = self._measured(implementation, problem, _saved)
        if measured is not None:
            return measured.beside(inputs)
        longer = [
            (_saved(one.row), length(one.row))
            for one in self.rows.over_lengths(problem, implementation.backend)
            if one.row["status"] == "ok" and length(one.row) > length(problem)
            if _saved(one.row)
        ]
        if longer:
            least, n = min(longer)
            words = f"at most what was measured at N = {spaced(n)}"
            return Bytes(value=least + inputs, words=words, at_most=True)
        why = self._refused(implementation, problem)
        return Bytes(value=None, words=why or NOT_KEPT)

    def edges(self, implementation: Implementation, problem: Fields) -> Edges:
        place = implementation.backend, key_over(problem)
        if place not in self._edges:
            self._edges[place] = self._edges_of(implementation, problem)
        return self._edges[place]

    def longest_by_bytes(
        self, implementation: Implementation, problem: Fields, budget: int, most: int
    ) -> int | None:
        """The longest context whose counted bytes are within a budget; None if not known."""

        def within(n: int) -> bool:
            longer = {**problem, **dict.fromkeys(growing(problem), n)}
            found = self.counted(implementation, longer)
            if found.value is None or found.at_most:
                raise LookupError
            return found.value <= budget

        try:
            return last_within(most, within)
        except LookupError:
            return None

    def _measured(
        self, implementation: Implementation, problem: Fields, of: Callable[[Fields], int]
    ) -> Bytes | None:
        """Exact bytes by rows: of this length, or by the polynomial through others."""
        stored = self.rows.of(problem).get(implementation.backend)
        if stored is not None and stored.row["status"] == "ok" and (value := of(stored.row)):
            return Bytes(value=value, words="measured at this length")
        n = length(problem)
        curve = self._curve(implementation, problem, of)
        if curve is None or n < curve.holds_from:
            return None
        lengths = sorted((*curve.solved, *curve.agrees))
        measured = ", ".join(spaced(one) for one in lengths)
        return Bytes(value=int(curve.at(n)), words=f"by the exact bytes measured at N = {measured}")

    def _why_none(self, implementation: Implementation, problem: Fields) -> str:
        """What rows say, before a formula is asked for, which takes long; "" if nothing."""
        if why := self._refused(implementation, problem):
            return why
        rows = [one.row for one in self.rows.over_lengths(problem, implementation.backend)]
        lengths = sorted({length(row) for row in rows if _peak(row)})
        if implementation.compiles and lengths:
            return f"its bytes were measured at N = {', '.join(map(spaced, lengths))} only"
        return ""

    def _refused(self, implementation: Implementation, problem: Fields) -> str:
        """Why no row of any length could run; "" if one could, or there is none."""
        rows = [one.row for one in self.rows.over_lengths(problem, implementation.backend)]
        if rows and all(row["status"] in REFUSED for row in rows):
            return f"{rows[0]['status']}: {rows[0]['reason']}"
        return ""

    def _curve(
        self, implementation: Implementation, problem: Fields, of: Callable[[Fields], int]
    ) -> Polynomial | None:
        """Through the bytes that were measured at other lengths; None unless it is exact."""
        place = implementation.backend, key_over(problem), of
        if place not in self._polynomials:
            counts = {
                length(one.row): of(one.row)
                for one in self.rows.over_lengths(problem, implementation.backend)
                if one.row["status"] == "ok" and of(one.row)
            }
            curve = through(counts) if len(counts) >= FEWEST_MEASURED else None
            self._polynomials[place] = curve if curve is not None and curve.exact else None
        return self._polynomials[place]

    def _edges_of(self, implementation: Implementation, problem: Fields) -> Edges:
        backend = implementation.backend
        fits, fails = [], []
        for one in self.rows.over_lengths(problem, backend):
            n = length(one.row)
            if one.row["status"] == "ok" and (peak := _peak(one.row)):
                needed = peak + int(one.row.get("input_bytes") or 0)
                words = f"at most what was measured at N = {spaced(n)}"
                fits.append(Edge(length=n, needed=needed, words=words, wall=False))
            if one.row["status"] == "oom":
                needed = int(one.run.meta["memory_bytes"])
                words = f"N = {spaced(n)} ran out of {size_text(needed)}"
                fails.append(Edge(length=n, needed=needed, words=words, wall=True))
        searched = tuple(self.rows.walls_of(problem, backend))
        for wall in (one.row for one in searched):
            low, high, needed = wall["seq_len_low"], wall["seq_len_high"], wall["memory_bytes"]
            if low:
                words = fitting(wall)
                fits.append(Edge(length=low, needed=needed, words=words, wall=True))
            if high and wall["limited_by"] == "memory":
                words = (
                    f"a search found that N = {spaced(high)} does not fit into {size_text(needed)}"
                )
                fails.append(Edge(length=high, needed=needed, words=words, wall=True))
        stops = min(_stops(searched), key=lambda edge: edge.length, default=None)
        return Edges(fits=tuple(fits), fails=tuple(fails), stops=stops, searched=searched)


def fitting(wall: Fields) -> str:
    """What a search found to fit: `a search found that N = 9 fits into 1 GiB and 10 does not`."""
    words = f"a search found that N = {spaced(wall['seq_len_low'])} fits into"
    ends = wall["seq_len_high"] and wall["limited_by"] == "memory"
    beyond = f" and {spaced(wall['seq_len_high'])} does not" if ends else ""
    return f"{words} {size_text(wall['memory_bytes'])}{beyond}"


def _stops(searched: tuple[Stored, ...]) -> Iterator[Edge]:
    """Where a backend itself fails, whatever memory there is."""
    for one in searched:
        wall, high = one.row, one.row["seq_len_high"]
        if high and wall["limited_by"] == "backend":
            trials = (trial["reason"] for trial in wall["probes"] if trial["seq_len"] == high)
            why = next(trials, "")
            words = f"a search found that it fails from N = {spaced(high)} on"
            words += f": {why}" if why else ""
            yield Edge(length=high, needed=wall["memory_bytes"], words=words, wall=True)


def _peak(row: Fields) -> int:
    """Peak and workspace; 0 if the peak was not measured."""
    peak = row.get("peak_bytes")
    return 0 if peak is None else int(peak) + int(row.get("workspace_bytes") or 0)


def _saved(row: Fields) -> int:
    """What the forward pass leaves; 0 if that was not measured."""
    return int(row.get("saved_bytes") or 0)
