"""The whole answer to an inquiry: decisions, bytes, what fits and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..data.row_groups import by
from ..data.run_meta import Run
from .asked import Asked, Inquiry
from .choices import Decision, LayerTime, decide
from .memory import Longest, Memory, Need, Sequences
from .stored import StoredRows


@dataclass(frozen=True, kw_only=True)
class Advice:
    """An inquiry with what is known of it. `decisions`: by phase, then by context."""

    inquiry: Inquiry
    rows: StoredRows
    decisions: Sequence[Decision]

    @cached_property
    def memory(self) -> Memory:
        return Memory(inquiry=self.inquiry, rows=self.rows)

    @cached_property
    def longest(self) -> Sequence[Longest]:
        """Per phase, each implementation."""
        return [
            self.memory.longest(implementation, phase)
            for phase in dict.fromkeys(one.phase for one in self.decisions if one.choices)
            for implementation in self.inquiry.implementations
        ]

    @cached_property
    def needs(self) -> Sequence[Need]:
        """Bytes at the contexts that were asked, for the implementation that is advised; weights,
        keys and values also where there is none.
        """
        return [self._need(one) for one in self.decisions]

    def _need(self, decision: Decision) -> Need:
        """Of the fastest; without any time, of the one whose attention is known to need least."""
        chosen, at = decision.chosen, (decision.phase, decision.context)
        if chosen is not None:
            return self.memory.need(chosen.implementation, *at)
        every = [self.memory.need(one, *at) for one in self.inquiry.implementations]
        known = [one for one in every if one.attention_bytes is not None]
        none = replace(every[0], implementation="")
        return min(known, key=lambda one: one.attention_bytes or 0, default=none)

    @property
    def sequences(self) -> Sequence[Sequences]:
        """How many fit, by keys and values alone, at the contexts that were asked."""
        caches = any(phase != "training" for phase in self.inquiry.phases)
        return [*map(self.memory.sequences, self.inquiry.contexts)] if caches else []

    @property
    def can_be_measured(self) -> bool:
        """Whether some layer's attention in some phase can."""
        return any(decision.choices for decision in self.decisions)

    @property
    def cells(self) -> Iterator[LayerTime]:
        for decision in self.decisions:
            for choice in decision.choices:
                yield from choice.cells

    @property
    def runs(self) -> list[Run]:
        """Those that the answer's rows are from."""
        used = (cell.stored.run for cell in self.cells if cell.stored is not None)
        return list({id(run): run for run in used}.values())

    @property
    def disturbed(self) -> tuple[int, int]:
        """Of how many times most blocks were disturbed by other work, and of how many in all."""
        timed = [cell for cell in self.cells if cell.call_ms is not None]
        return sum(cell.disturbed for cell in timed), len(timed)

    @property
    def is_doubtful(self) -> bool:
        """A longer run, or one on an idle machine, may decide more."""
        return bool(self.disturbed[0]) or any(one.close for one in self.decisions)

    @property
    def not_measured(self) -> list[Asked]:
        """Kinds of layers whose attention attnbench cannot measure."""
        every = (asked for decision in self.decisions for asked in decision.not_measured)
        return [some[0] for some in by(every, lambda asked: asked.layer).values()]

    @property
    def traps(self) -> list[str]:
        """Where sdpa fell back to the kernel that writes all scores."""
        found = (
            f"sdpa ran the kernel math in {cell.asked.phase} of {cell.asked.layer}: it writes all"
            " scores"
            for cell in self.cells
            if cell.implementation.name == "sdpa" and cell.kernel == "math"
        )
        return list(dict.fromkeys(found))


def advise(inquiry: Inquiry, rows: StoredRows) -> Advice:
    """Raises BadInput for a context beyond the model's own."""
    decisions = [
        decide(inquiry, rows, phase, context)
        for phase in inquiry.phases
        for context in inquiry.contexts
    ]
    return Advice(
        inquiry=inquiry,
        rows=rows,
        decisions=[one for one in decisions if one.choices or one.not_measured],
    )
