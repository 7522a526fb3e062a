"""Bytes over the context: weights, keys and values, attention; and the longest that still fits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ...harness.files.printable import spaced
from ..formatting import list_text, size_text
from .asked import Asked, Bytes, Fields, Implementation, Inquiry, Phase, key_over
from .call_bytes import CallBytes, fitting
from .stored import StoredRows
from .times import last_within

MOST_CONTEXT = 1 << 27  # tokens, where a model names no limit of its own
BELOW = "not known of layers that are not measured (below)"
STATES = "the state of some layers is not known (below)"
APPENDING = "the cache's copy of k and v"
"""In place of where the bytes of the call are from, where appending k and v needs more."""
Limit = Literal["weights", "memory", "model", "backend", "unknown", "none"]
"""What ends the longest context. "weights": they alone need more memory than there is. "backend":
the implementation fails beyond it. "unknown": what is beyond it needs bytes that nothing says.
"""
FoundBy = Literal["bytes", "wall"]
WALL = ("memory_bytes", "seq_len_low", "seq_len_high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Bytes at one context. None: not known, and `words` say why, else where they are from.

    `attention_bytes`: of the layer that needs most at a time, what is beside the cache: its q and
    what the call adds, or its q, k and v while the cache takes them up; in training, what its
    backward pass adds to `kept_bytes`: what attention of all layers keeps for the backward pass;
    None without one. `state_bytes`: of layers that are not attention. `at_most`: it may need less.
    `wall`: a wall decides, and no count of bytes. `refused`: the implementation fails.
    """

    context: int
    weight_bytes: int | None
    cache_bytes: int
    paged_cache_bytes: int
    attention_bytes: int | None
    words: str
    state_bytes: int | None = 0
    kept_bytes: int | None = None
    at_most: bool = False
    wall: bool = False
    refused: bool = False

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
    """The longest context in one phase; `context` is None if it cannot be known (`words`: why).

    `found_by`: what decides. `checked`: how searches of the wall agree with the bytes.
    """

    phase: Phase
    implementation: Implementation
    context: int | None
    limit: Limit
    words: str
    need: Need | None = None
    found_by: FoundBy = "bytes"
    checked: str = ""

    @property
    def at_least(self) -> bool:
        """Whether a longer one may do too: what ends it is a bound, or simply not known."""
        bound = self.limit == "memory" and self.need is not None and self.need.at_most
        return bound or self.limit == "unknown"


@dataclass(slots=True)
class MemoryOver:
    """Bytes of an inquiry at any context."""

    inquiry: Inquiry
    rows: StoredRows
    _calls: dict[Any, CallBytes] = field(init=False, default_factory=dict)

    def calls(self, implementation: Implementation, problem: Fields) -> CallBytes:
        place = implementation.backend, key_over(problem)
        if place not in self._calls:
            shapes = self.inquiry.shapes
            self._calls[place] = CallBytes.of(shapes, self.rows, implementation, problem)
        return self._calls[place]

    def need(self, implementation: Implementation, phase: Phase, context: int) -> Need:
        """Raises BadInput beyond the model's own longest context."""
        shapes, training = self.inquiry.shapes, phase == "training"
        parts = [self._of_layer(implementation, one) for one in shapes.asked(phase, context)]
        found, kept = [call for call, _ in parts], [one for _, one in parts if one is not None]
        everything = [*found, *(one for one, _ in kept)]
        known = all(one.value is not None for one in everything)
        deciding = max(found, key=lambda one: one.value or 0, default=None) if known else None
        unknown = [one for one in everything if one.value is None]
        state_bytes = 0 if training else self.inquiry.state_bytes
        stateless = [STATES] if state_bytes is None else []
        kept_bytes = sum(count * (one.value or 0) for one, count in kept)
        return Need(
            context=context,
            weight_bytes=self.inquiry.weight_bytes,
            cache_bytes=0 if training else shapes.cache_bytes(context),
            paged_cache_bytes=0 if training else shapes.paged_cache_bytes(context),
            attention_bytes=(deciding.value if deciding else 0) if known else None,
            words="; ".join(dict.fromkeys([*(one.words for one in everything), *stateless])),
            state_bytes=state_bytes,
            kept_bytes=kept_bytes if kept and known else None,
            at_most=any(one.at_most for one in everything),
            wall=any(one.wall for one in ([deciding] if deciding else unknown)),
            refused=any(one.refused for one in unknown),
        )

    def sequences(self, context: int) -> Sequences:
        asked, shapes = self.inquiry, self.inquiry.shapes
        left = asked.memory_bytes if asked.beside_weights else asked.left_bytes
        state = asked.state_bytes
        sizes = (shapes.cache_bytes(context), shapes.paged_cache_bytes(context))
        known = [
            None
            if left is None or state is None or not size + state
            else max(0, left) * asked.batch // (size + state)
            for size in sizes
        ]
        return Sequences(context, *known)

    def longest(self, implementation: Implementation, phase: Phase) -> Longest:
        """By bisection: bytes only grow with the context."""
        budget, most = self.inquiry.memory_bytes, self.inquiry.most_context
        found = Longest(
            phase=phase, implementation=implementation, context=None, limit="none", words=""
        )
        if budget is None:
            why = "how much memory there is is not known: give --memory-gib"
            return replace(found, words=why)
        if (self.inquiry.left_bytes or 0) < 0:
            return replace(found, context=0, limit="weights")

        def fits(context: int) -> bool:
            needed = self.need(implementation, phase, context).total_bytes
            return needed is not None and needed <= budget

        top = most or MOST_CONTEXT
        low = last_within(top, fits)
        need = self.need(implementation, phase, max(low, 1))
        if not low and (need.total_bytes is None or need.at_most):
            return replace(found, words=need.words)
        limit: Limit = "model" if most else "none"
        beyond = self.need(implementation, phase, low + 1) if low < top else None
        if beyond is not None:
            counted = beyond.total_bytes is not None
            limit = "backend" if beyond.refused else "memory" if counted else "unknown"
        by_wall = need.wall or (beyond is not None and beyond.wall)
        return replace(
            found,
            context=low,
            limit=limit,
            words=need.words,
            need=need,
            found_by="wall" if by_wall else "bytes",
            checked=self._checked(implementation, phase, low, need.words),
        )

    def _of_layer(
        self, implementation: Implementation, asked: Asked
    ) -> tuple[Bytes, tuple[Bytes, int] | None]:
        """Of one call; and in training what a layer keeps, with how many layers there are.

        The call's are those beyond what its own layer keeps, in training, or has in the cache.
        """
        if asked.problem is None:
            return Bytes(value=None, words=BELOW), None
        calls = self.calls(implementation, asked.problem)
        call = calls.needed(asked.problem)
        if asked.phase != "training":
            call = call.beside(-asked.cached_bytes)
            if call.value is not None and call.value < asked.appended_bytes:
                call = Bytes(value=asked.appended_bytes, words=APPENDING)
            return call, None
        kept = calls.kept(asked.problem)
        return call.beside(-(kept.value or 0)), (kept, asked.count)

    def _checked(
        self, implementation: Implementation, phase: Phase, context: int, known: str
    ) -> str:
        """What searches found of the layers' walls, beside what the bytes say of them, but not
        again what is `known` from one.
        """
        said: dict[str, None] = {}
        for asked in self.inquiry.shapes.asked(phase, max(1, context)):
            if asked.problem is None:
                continue
            calls = self.calls(implementation, asked.problem)
            for wall in (one.row for one in calls.searched):
                budget, low, high = (wall[name] for name in WALL)
                if wall["limited_by"] != "memory" or not high:
                    continue
                counted = calls.longest_by_bytes(asked.problem, budget, 2 * high)
                ours = "" if counted is None else f"; by these bytes {spaced(counted)} is the last"
                if not ours and fitting(wall) in known:
                    continue
                words = f"a search found that one layer's call fits into {size_text(budget)} at"
                said[f"{words} N = {spaced(low)} and not at {spaced(high)}{ours}"] = None
        return list_text(list(said)) if said else ""


def contexts_to_draw(longest: Sequence[int], asked: Sequence[int], most: int | None) -> list[int]:
    """Powers of two around what was asked and what fits, and those themselves."""
    far = 2 * max([*longest, *asked, 1])
    far = min(far, most or far)
    near = max(1, min([*asked, *(one for one in longest if one), far]) // 8)
    powers = [1 << power for power in range(40) if near <= 1 << power <= far]
    return sorted({*powers, near, far, *(one for one in (*longest, *asked) if 0 < one <= far)})
