"""Bytes over the context: of one call, of all that must fit, and the longest context that does.

A call's bytes are those that were measured, or follow exactly from measured ones, or are by a
formula; else they are a bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Literal, NamedTuple

from ...harness.files.printable import spaced
from ..data.polynomial import FEWEST, through
from ..formatting import size_text
from .asked import Bytes, Fields, Implementation, Inquiry, Phase, growing, key_over, length
from .stored import WITHOUT_CALL, StoredRows

MOST_CONTEXT = 1 << 27  # tokens, where a model names no limit of its own
FEWEST_MEASURED = FEWEST + 1  # one length more than a polynomial needs, so that one can agree
NOT_KEPT = "bytes kept for the backward pass were not measured; add --measure"
BELOW = "some layers were not measured (below)"
STATES = "some layers keep a state of unknown size (below)"
APPENDING = "the cache's copy of k and v"
"""In place of where the bytes of the call are from, where appending k and v needs more."""
Limit = Literal["weights", "memory", "model", "unknown", "none"]
"""What ends the longest context. "weights": they alone need more memory than there is. "unknown":
nothing says how many bytes what is beyond it needs.
"""


# ---- one call ------------------------------------------------------------------------------------


class CallBytes:
    """An implementation's calls of problems that differ in their context only (key_over)."""

    def __init__(
        self, asked: Inquiry, rows: StoredRows, implementation: Implementation, problem: Fields
    ) -> None:
        self.shapes, self.implementation = asked.shapes, implementation
        stored = rows.over_lengths(problem, implementation.backend)
        every = [one.row for one in stored.values()]
        self.refused = ""  # why no row of any length could run
        if every and all(row["status"] in WITHOUT_CALL for row in every):
            self.refused = f"{every[0]['status']}: {every[0]['reason']}"
        ran = {n: one.row for n, one in stored.items() if one.row["status"] == "ok"}
        peaks = {n: row for n, row in ran.items() if row.get("peak_bytes") is not None}
        self.peaks = {
            n: row["peak_bytes"] + (row.get("workspace_bytes") or 0) for n, row in peaks.items()
        }
        self.saved = {n: row["saved_bytes"] for n, row in ran.items() if row.get("saved_bytes")}
        self.ran_in = {n: p + int(ran[n].get("input_bytes") or 0) for n, p in self.peaks.items()}
        failed = {n: one for n, one in stored.items() if one.row["status"] == "oom"}
        self.ran_out_of = {n: int(one.run.meta["memory_bytes"]) for n, one in failed.items()}

    def needed(self, problem: Fields) -> Bytes:
        """Of a call and its inputs. What ran in so many bytes needs no more at shorter lengths, and
        what ran out of them needs more at longer ones.
        """
        found, n = self._counted(problem), length(problem)
        bound = _least_of_longer(self.ran_in, n)
        if bound and (found.value is None or (found.at_most and (bound.value or 0) < found.value)):
            found = bound
        shorter = {size: other for other, size in self.ran_out_of.items() if other <= n}
        most = max(shorter, default=-1)
        if found.value is not None and found.value <= most:
            words = f"N = {spaced(shorter[most])} ran out of {size_text(most)}"
            return Bytes(value=most + 1, words=words)
        return found

    def kept(self, problem: Fields) -> Bytes:
        """What a layer's attention keeps for the backward pass: q, k and v, and what its forward
        pass leaves.
        """
        inputs, n = self.shapes.input_bytes({**problem, "passes": "forward"}), length(problem)
        found = _exact(self.saved, n) or _least_of_longer(self.saved, n)
        return (found or Bytes(value=None, words=self.refused or NOT_KEPT)).beside(inputs)

    def _counted(self, problem: Fields) -> Bytes:
        """The same by its own length, its polynomial, a formula, or how scores grow."""
        n, lengths = length(problem), sorted(self.peaks)
        found = _exact(self.peaks, n)
        if found is None and self.refused:
            found = Bytes(value=None, words=self.refused)
        elif found is None:
            found = self.shapes.predicted_peak(self.implementation, problem)
        if found.value is None and lengths and n > lengths[-1]:
            # no call's bytes grow faster than its scores do, each length that grows by itself
            scores = (n / lengths[-1]) ** len(growing(problem))
            words = (
                f"upper bound: as measured at N = {spaced(lengths[-1])}, grown as the scores grow"
            )
            value = ceil(self.peaks[lengths[-1]] * scores)
            found = Bytes(value=value, words=words, at_most=True)
        return found.beside(self.shapes.input_bytes(problem))


def _exact(counts: Mapping[int, int], n: int) -> Bytes | None:
    """As measured at this length, or by the polynomial through others, if that is exact."""
    if n in counts:
        return Bytes(value=counts[n], words="measured at this length")
    curve = through(counts) if len(counts) >= FEWEST_MEASURED else None
    if curve is None or not curve.exact or n < curve.holds_from:
        return None
    lengths = ", ".join(map(spaced, sorted((*curve.solved, *curve.agrees))))
    return Bytes(value=int(curve.at(n)), words=f"by the exact bytes measured at N = {lengths}")


def _least_of_longer(sizes: Mapping[int, int], n: int) -> Bytes | None:
    longer = {size: other for other, size in sizes.items() if other >= n}
    if not longer:
        return None
    words = f"upper bound: measured at N = {spaced(longer[min(longer)])}"
    return Bytes(value=min(longer), words=words, at_most=True)


# ---- all that must fit ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes at one context. None: not known, and `source` says why, else where they are from.

    `implementation`: "" where only weights, keys and values are known. `attention_bytes`: of the
    layer that needs most at a time, what is beside the cache: its q and what the call adds, or its
    q, k and v while the cache takes them up; in training, what its backward pass adds to
    `kept_bytes`: what attention of all layers keeps for the backward pass; None without one.
    `state_bytes`: of layers that are not attention. `at_most`: it may need less.
    """

    phase: Phase
    implementation: str
    context: int
    weight_bytes: int | None
    cache_bytes: int
    paged_cache_bytes: int
    state_bytes: int | None
    kept_bytes: int | None
    attention_bytes: int | None
    at_most: bool
    source: str

    @property
    def total_bytes(self) -> int | None:
        """Without weights that are not known."""
        if self.attention_bytes is None or self.state_bytes is None:
            return None
        beside = (self.weight_bytes or 0) + self.cache_bytes + (self.kept_bytes or 0)
        return beside + self.state_bytes + self.attention_bytes


class Sequences(NamedTuple):
    """How many sequences of so many tokens the memory beside the weights holds, by their keys,
    values and states alone, and in one pool of pages; None if it is not known.
    """

    context: int
    fit: int | None
    fit_paged: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """The longest context in one phase; `context` is None if it cannot be known (`source`: why).

    `at_least`: a longer one may fit too, since what ends it is a bound, or simply not known.
    """

    phase: Phase
    attn_implementation: str
    context: int | None = None
    limit: Limit = "none"
    source: str = ""
    at_least: bool = False
    total_bytes: int = 0


@dataclass(slots=True)
class Memory:
    """Bytes of an inquiry at any context."""

    inquiry: Inquiry
    rows: StoredRows
    _calls: dict[Any, CallBytes] = field(init=False, default_factory=dict)

    def calls(self, implementation: Implementation, problem: Fields) -> CallBytes:
        place = implementation.backend, key_over(problem)
        if place not in self._calls:
            self._calls[place] = CallBytes(self.inquiry, self.rows, implementation, problem)
        return self._calls[place]

    def need(self, implementation: Implementation, phase: Phase, context: int) -> Need:
        """Raises BadInput beyond the model's own longest context."""
        asked, shapes, training = self.inquiry, self.inquiry.shapes, phase == "training"
        found, kept, kept_bytes = list[Bytes](), list[Bytes](), 0
        for one in shapes.asked(phase, context):
            if one.problem is None:
                found.append(Bytes(value=None, words=BELOW))
                continue
            calls = self.calls(implementation, one.problem)
            call = calls.needed(one.problem).beside(-one.cached_bytes)
            if training:
                own = calls.kept(one.problem)
                kept.append(own)
                kept_bytes += one.count * (own.value or 0)
                call = call.beside(-(own.value or 0))
            elif call.value is not None and call.value < one.appended_bytes:
                call = Bytes(value=one.appended_bytes, words=APPENDING)
            found.append(call)
        every = [*found, *kept]
        known = all(one.value is not None for one in every)
        state_bytes = 0 if training else asked.state_bytes
        words = [one.words for one in every] + ([STATES] if state_bytes is None else [])
        return Need(
            phase=phase,
            implementation=implementation.name,
            context=context,
            weight_bytes=asked.weight_bytes,
            cache_bytes=0 if training else shapes.cache_bytes(context),
            paged_cache_bytes=0 if training else shapes.cache_bytes(context, paged=True),
            state_bytes=state_bytes,
            kept_bytes=kept_bytes if kept and known else None,
            attention_bytes=max((one.value or 0 for one in found), default=0) if known else None,
            at_most=any(one.at_most for one in every),
            source="; ".join(dict.fromkeys(words)),
        )

    def sequences(self, context: int) -> Sequences:
        asked = self.inquiry
        left = asked.memory_bytes if asked.beside_weights else asked.left_bytes
        if left is None or asked.state_bytes is None:
            return Sequences(context, None, None)
        caches = (asked.shapes.cache_bytes(context, paged=paged) for paged in (False, True))
        sizes = [cache + asked.state_bytes for cache in caches]
        fit = [max(0, left) * asked.batch // size if size else None for size in sizes]
        return Sequences(context, *fit)

    def longest(self, implementation: Implementation, phase: Phase) -> Longest:
        """By bisection: bytes only grow with the context."""
        budget, most = self.inquiry.memory_bytes, self.inquiry.most_context
        end = Longest(phase=phase, attn_implementation=implementation.name)
        if budget is None:
            return replace(end, source="the size of the memory is not known: give --memory-gib")
        if (self.inquiry.left_bytes or 0) < 0:
            return replace(end, context=0, limit="weights")

        def fits(context: int) -> bool:
            needed = self.need(implementation, phase, context).total_bytes
            return needed is not None and needed <= budget

        top = most or MOST_CONTEXT
        last = last_within(top, fits)
        need = self.need(implementation, phase, max(last, 1))
        if not last and (need.total_bytes is None or need.at_most):
            return replace(end, source=need.source)
        end = replace(end, context=last, source=need.source, total_bytes=need.total_bytes or 0)
        if last == top:
            return replace(end, limit="model" if most else "none")
        beyond = self.need(implementation, phase, last + 1)
        if beyond.total_bytes is None:
            return replace(end, limit="unknown", at_least=True)
        sources = dict.fromkeys((need.source, beyond.source))
        return replace(end, limit="memory", at_least=need.at_most, source="; ".join(sources))


def last_within(most: int, within: Callable[[int], bool]) -> int:
    """The largest of 1 to `most` that is, by bisection; 0 if none is."""
    low, high, middle = 0, most + 1, most
    while high - low > 1:
        low, high = (middle, high) if within(middle) else (low, middle)
        middle = (low + high) // 2
    return low
