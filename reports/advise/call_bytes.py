"""Bytes of one call at any length: measured, following from measured ones, by formula or by a wall.

A wall is a length at which memory was seen to end: by a search (`attnbench wall`), or by a case
that ran out of memory. What runs in so many bytes needs no more at shorter lengths, and what runs
out of them needs more at longer ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from ...harness.files.printable import spaced
from ..data.polynomial import FEWEST, Polynomial, through
from ..formatting import size_text
from .asked import Bytes, Fields, Implementation, Shapes, growing, length
from .stored import WITHOUT_CALL, Stored, StoredRows
from .times import last_within

FEWEST_MEASURED = FEWEST + 1  # one length more than a polynomial needs, so that one can agree
NOT_KEPT = "no row has bytes that a layer keeps for its backward pass; --measure measures them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """At this length a call with its inputs fits into so many bytes, or does not."""

    length: int
    needed: int
    words: str
    wall: bool = True


@dataclass(frozen=True)
class Counts:
    """Exact bytes by length, where they were measured."""

    by_length: dict[int, int]

    @cached_property
    def curve(self) -> Polynomial | None:
        """Through all of them; None unless it is exact."""
        found = through(self.by_length) if len(self.by_length) >= FEWEST_MEASURED else None
        return found if found is not None and found.exact else None

    def at(self, n: int) -> Bytes | None:
        """As measured at this length, or by the polynomial through others."""
        if n in self.by_length:
            return Bytes(value=self.by_length[n], words="measured at this length")
        if self.curve is None or n < self.curve.holds_from:
            return None
        lengths = ", ".join(map(spaced, sorted((*self.curve.solved, *self.curve.agrees))))
        words = f"by the exact bytes measured at N = {lengths}"
        return Bytes(value=int(self.curve.at(n)), words=words)


@dataclass(frozen=True, kw_only=True)
class CallBytes:
    """An implementation's calls of problems that differ in their context only (key_over).

    `stored`: its rows, of each length the newest. `searched`: those of walls.
    """

    shapes: Shapes
    implementation: Implementation
    stored: Sequence[Stored]
    searched: Sequence[Stored]

    @classmethod
    def of(
        cls, shapes: Shapes, rows: StoredRows, implementation: Implementation, problem: Fields
    ) -> "CallBytes":
        backend = implementation.backend
        return cls(
            shapes=shapes,
            implementation=implementation,
            stored=rows.over_lengths(problem, backend),
            searched=rows.walls_of(problem, backend),
        )

    def needed(self, problem: Fields) -> Bytes:
        """Of a call and its inputs; walls correct what bytes say, and say it where bytes do not."""
        found, n = self.counted(problem), length(problem)
        if self.stops is not None and n >= self.stops.length:
            return Bytes(value=None, words=self.stops.words, wall=True, refused=True)
        if found.value is None or found.at_most:
            bounds = [edge for edge in self.fits if edge.length >= n]
            least = min(bounds, key=lambda edge: edge.needed, default=None)
            if least is not None and (found.value is None or least.needed < found.value):
                found = Bytes(value=least.needed, words=least.words, at_most=True, wall=least.wall)
        passed = [edge for edge in self.fails if edge.length <= n]
        most = max(passed, key=lambda edge: edge.needed, default=None)
        if most is not None and found.value is not None and found.value <= most.needed:
            return Bytes(value=most.needed + 1, words=most.words, wall=True)
        return found

    def counted(self, problem: Fields) -> Bytes:
        """Of a call and its inputs, without walls."""
        inputs = self.shapes.input_bytes(problem)
        if measured := self.peaks.at(length(problem)):
            return measured.beside(inputs)
        why, grown = self._why_none, self._grown(problem)
        predicted = Bytes(value=None, words=why)
        if not why:
            predicted = self.shapes.predicted_peak(self.implementation, problem)
        bound = grown is not None and predicted.value is None
        return (grown if grown is not None and bound else predicted).beside(inputs)

    def _grown(self, problem: Fields) -> Bytes | None:
        """A bound by the longest that was measured, if it is shorter: no call's bytes grow faster
        than its scores do, each length that grows by itself.
        """
        n, most = length(problem), max(self.peaks.by_length, default=0)
        if not 0 < most < n or self._refused:
            return None
        scores = (n / most) ** len(growing(problem))
        words = f"at most as its scores grow from what was measured at N = {spaced(most)}"
        return Bytes(value=ceil(self.peaks.by_length[most] * scores), words=words, at_most=True)

    def kept(self, problem: Fields) -> Bytes:
        """What a layer's attention keeps for the backward pass: q, k and v, and what its forward
        pass leaves.
        """
        inputs = self.shapes.input_bytes({**problem, "passes": "forward"})
        if measured := self.saved.at(length(problem)):
            return measured.beside(inputs)
        longer = [(kept, n) for n, kept in self.saved.by_length.items() if n > length(problem)]
        if longer:
            least, n = min(longer)
            return Bytes(value=least + inputs, words=_at_most(n), at_most=True)
        return Bytes(value=None, words=self._refused or NOT_KEPT)

    def longest_by_bytes(self, problem: Fields, budget: int, most: int) -> int | None:
        """The longest context whose counted bytes are within a budget; None if not known."""

        def within(n: int) -> bool:
            found = self.counted({**problem, **dict.fromkeys(growing(problem), n)})
            if found.value is None or found.at_most:
                raise LookupError
            return found.value <= budget

        try:
            return last_within(most, within)
        except LookupError:
            return None

    # ---- what rows say ---------------------------------------------------------------------------

    @cached_property
    def _ran(self) -> dict[int, Fields]:
        """The rows of calls that ran, by length."""
        return {length(one.row): one.row for one in self.stored if one.row["status"] == "ok"}

    @cached_property
    def peaks(self) -> Counts:
        """Peak and workspace."""
        return Counts({n: peak for n, row in self._ran.items() if (peak := _peak(row))})

    @cached_property
    def saved(self) -> Counts:
        """What the forward pass leaves."""
        found = {n: int(row.get("saved_bytes") or 0) for n, row in self._ran.items()}
        return Counts({n: kept for n, kept in found.items() if kept})

    @cached_property
    def _why_none(self) -> str:
        """Why there are no bytes, before a formula is asked for; "" if it may be."""
        lengths = sorted({length(one.row) for one in self.stored if _peak(one.row)})
        if lengths and self.implementation.compiles and not self._refused:
            return f"its bytes were measured at N = {', '.join(map(spaced, lengths))} only"
        return self._refused

    @cached_property
    def _refused(self) -> str:
        """Why no row of any length could run; "" if one could, or there is none."""
        rows = [one.row for one in self.stored]
        if rows and all(row["status"] in WITHOUT_CALL for row in rows):
            return f"{rows[0]['status']}: {rows[0]['reason']}"
        return ""

    @cached_property
    def fits(self) -> Sequence[Edge]:
        return [*self._fits()]

    def _fits(self) -> Iterator[Edge]:
        for n, peak in self.peaks.by_length.items():
            needed = peak + int(self._ran[n].get("input_bytes") or 0)
            yield Edge(length=n, needed=needed, words=_at_most(n), wall=False)
        for wall in (one.row for one in self.searched if one.row["seq_len_low"]):
            words = fitting(wall)
            yield Edge(length=wall["seq_len_low"], needed=wall["memory_bytes"], words=words)

    @cached_property
    def fails(self) -> Sequence[Edge]:
        return [*self._fails()]

    def _fails(self) -> Iterator[Edge]:
        for one in self.stored:
            if one.row["status"] == "oom":
                n, needed = length(one.row), int(one.run.meta["memory_bytes"])
                words = f"N = {spaced(n)} ran out of {size_text(needed)}"
                yield Edge(length=n, needed=needed, words=words)
        for wall in (one.row for one in self.searched):
            if (n := wall["seq_len_high"]) and wall["limited_by"] == "memory":
                room = size_text(wall["memory_bytes"])
                words = f"a search found that N = {spaced(n)} does not fit into {room}"
                yield Edge(length=n, needed=wall["memory_bytes"], words=words)

    @cached_property
    def stops(self) -> Edge | None:
        """Where the backend itself fails first, whatever memory there is."""
        return min(self._stops(), key=lambda edge: edge.length, default=None)

    def _stops(self) -> Iterator[Edge]:
        for wall in (one.row for one in self.searched):
            if (n := wall["seq_len_high"]) and wall["limited_by"] == "backend":
                trials = (trial["reason"] for trial in wall["probes"] if trial["seq_len"] == n)
                why = next(trials, "")
                words = f"a search found that it fails from N = {spaced(n)} on"
                words += f": {why}" if why else ""
                yield Edge(length=n, needed=wall["memory_bytes"], words=words)


def fitting(wall: Fields) -> str:
    """What a search found to fit: `a search found that N = 9 fits into 1 GiB and 10 does not`."""
    words = f"a search found that N = {spaced(wall['seq_len_low'])} fits into"
    ends = wall["seq_len_high"] and wall["limited_by"] == "memory"
    beyond = f" and {spaced(wall['seq_len_high'])} does not" if ends else ""
    return f"{words} {size_text(wall['memory_bytes'])}{beyond}"


def _at_most(n: int) -> str:
    return f"at most what was measured at N = {spaced(n)}"


def _peak(row: Fields) -> int:
    """Peak and workspace; 0 if the peak was not measured."""
    peak = row.get("peak_bytes")
    return 0 if peak is None else int(peak) + int(row.get("workspace_bytes") or 0)
