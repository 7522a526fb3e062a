"""Bytes over the context: weights, keys and values, one layer's attention; and what still fits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..analysis.polynomial import FEWEST, Polynomial, through
from .asked import Fields, Implementation, Inquiry, Phase, Predicted, key_over
from .stored import StoredRows

FEWEST_MEASURED = FEWEST + 1  # one length more than a polynomial needs, so that one can agree
MOST_CONTEXT = 1 << 27  # tokens, where a model names no limit of its own
REFUSED = ("unavailable", "unsupported")
Limit = Literal["memory", "model", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes at one context. None: not known, and `words` say why, else where they are from.

    `attention`: of the layer that needs most at a time: its q, k and v, and what the call adds.
    `at_most`: it may need less, as a relative's formula stands for its own.
    """

    context: int
    weights: int | None
    cache: int
    paged_cache: int
    attention: int | None
    words: str
    at_most: bool = False

    @property
    def total(self) -> int | None:
        """Without weights that are not known."""
        if self.attention is None:
            return None
        return (self.weights or 0) + self.cache + self.attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """The longest context in one phase; `context` is None if it cannot be known (`words`: why)."""

    phase: Phase
    implementation: Implementation
    context: int | None
    limit: Limit
    words: str
    need: Need | None = None

    @property
    def at_least(self) -> bool:
        """Whether a longer one may fit too: memory ends it by bytes that are a bound."""
        return self.limit == "memory" and self.need is not None and self.need.at_most


@dataclass(slots=True)
class MemoryOver:
    """Bytes of an inquiry at any context."""

    inquiry: Inquiry
    rows: StoredRows
    _polynomials: dict[Any, Polynomial | None] = field(default_factory=dict)

    def need(self, implementation: Implementation, phase: Phase, context: int) -> Need:
        """Raises BadInput beyond the model's own longest context."""
        shapes = self.inquiry.shapes
        attention: int | None = 0
        words: list[str] = []
        at_most = False
        for asked in shapes.asked(phase, context):
            if asked.problem is None:
                words.append(f"not known for {asked.layer}: {asked.why}")
                attention = None
                continue
            found = self._peak(implementation, asked.problem)
            words.append(f"at most, {found.words}" if found.at_most else found.words)
            at_most |= found.at_most
            if found.peak_bytes is None:
                attention = None
            elif attention is not None:
                needed = found.peak_bytes + shapes.input_bytes(asked.problem)
                attention = max(attention, needed)
        return Need(
            context=context,
            weights=self.inquiry.weight_bytes,
            cache=shapes.cache_bytes(context),
            paged_cache=shapes.paged_cache_bytes(context),
            attention=attention,
            words="; ".join(dict.fromkeys(words)),
            at_most=at_most,
        )

    def longest(self, implementation: Implementation, phase: Phase) -> Longest:
        """By bisection: bytes only grow with the context."""
        budget, most = self.inquiry.memory_bytes, self.inquiry.most_context
        found = Longest(
            phase=phase, implementation=implementation, context=None, limit="none", words=""
        )
        if budget is None:
            return _why(found, "how much memory there is is not known: give --memory-gib")
        top = most or MOST_CONTEXT
        low, high, middle = 0, top + 1, top
        while high - low > 1:
            need = self.need(implementation, phase, middle)
            if need.total is None:
                return _why(found, need.words)
            low, high = (middle, high) if need.total <= budget else (low, middle)
            middle = (low + high) // 2
        need = self.need(implementation, phase, max(low, 1))
        limit: Limit = "memory" if low < top else "model" if most else "none"
        return Longest(
            phase=phase,
            implementation=implementation,
            context=low,
            limit=limit,
            words=need.words,
            need=need,
        )

    def _peak(self, implementation: Implementation, problem: Fields) -> Predicted:
        """Of one call, and how it is known: measured, by measured lengths, or by a formula."""
        stored = self.rows.of(problem).get(implementation.backend)
        if stored is not None and stored.row["status"] == "ok" and (peak := _kept(stored.row)):
            return Predicted(peak_bytes=peak, words="measured at this length")
        n = problem["kv_seq_len"]
        if (curve := self._curve(implementation, problem)) and n >= curve.holds_from:
            lengths = sorted((*curve.solved, *curve.agrees))
            measured = ", ".join(f"{one:,}" for one in lengths)
            words = f"by the exact bytes measured at N = {measured}"
            return Predicted(peak_bytes=int(curve.at(n)), words=words)
        if why := self._why_none(implementation, problem):
            return Predicted(peak_bytes=None, words=why)
        return self.inquiry.shapes.predicted_peak(implementation, problem)

    def _why_none(self, implementation: Implementation, problem: Fields) -> str:
        """What rows say, before a formula is asked for, which takes long; "" if nothing."""
        rows = [one.row for one in self.rows.over_lengths(problem, implementation.backend)]
        if rows and all(row["status"] in REFUSED for row in rows):
            return f"{rows[0]['status']}: {rows[0]['reason']}"
        lengths = sorted({row["kv_seq_len"] for row in rows if _kept(row)})
        if implementation.compiles and lengths:
            return f"its bytes were measured at N = {', '.join(f'{n:,}' for n in lengths)} only"
        return ""

    def _curve(self, implementation: Implementation, problem: Fields) -> Polynomial | None:
        """Through the peaks that were measured at other lengths; None unless it is exact."""
        place = implementation.backend, key_over(problem)
        if place not in self._polynomials:
            counts = {
                one.row["kv_seq_len"]: _kept(one.row)
                for one in self.rows.over_lengths(problem, implementation.backend)
                if one.row["status"] == "ok" and _kept(one.row)
            }
            enough = len(counts) >= FEWEST_MEASURED
            curve = through(counts) if enough else None
            self._polynomials[place] = curve if curve is not None and curve.exact else None
        return self._polynomials[place]


def _kept(row: Fields) -> int:
    """Peak and workspace; 0 if the peak was not measured."""
    peak = row.get("peak_bytes")
    return 0 if peak is None else int(peak) + int(row.get("workspace_bytes") or 0)


def _why(found: Longest, words: str) -> Longest:
    return Longest(
        phase=found.phase,
        implementation=found.implementation,
        context=None,
        limit="none",
        words=words,
    )


def contexts_to_draw(longest: Sequence[int], asked: Sequence[int], most: int | None) -> list[int]:
    """Powers of two around what was asked and what fits, and those themselves."""
    far = 2 * max([*longest, *asked, 1])
    far = min(far, most or far)
    near = max(1, min([*asked, *(one for one in longest if one), far]) // 8)
    powers = [1 << power for power in range(40) if near <= 1 << power <= far]
    return sorted({*powers, near, far, *(one for one in (*longest, *asked) if 0 < one <= far)})
