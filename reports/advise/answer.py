"""The whole answer to an inquiry: decisions, bytes, what fits, traps, and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..data.read import Run
from ..data.row_groups import by
from .asked import Asked, Implementation, Inquiry, Phase
from .choices import Choice, Decision, decide
from .memory import Longest, MemoryOver, Need, Sequences
from .stored import StoredRows
from .times import Cell, Times

WIDEST_HEAD = 256  # torch's flash kernels take no wider heads (aten/native/transformers)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """An inquiry with what is known of it. `decisions`: by phase, then by context."""

    inquiry: Inquiry
    rows: StoredRows
    decisions: Sequence[Decision]

    @cached_property
    def memory(self) -> MemoryOver:
        return MemoryOver(inquiry=self.inquiry, rows=self.rows)

    @cached_property
    def longest(self) -> Sequence[Longest]:
        """Per phase, each implementation."""
        return [
            self.memory.longest(implementation, phase)
            for phase in self.inquiry.phases
            if any(one.problem is not None for one in self.inquiry.shapes.asked(phase, 1))
            for implementation in self.inquiry.implementations
        ]

    @cached_property
    def needs(self) -> Sequence[tuple[Phase, Implementation | None, Need]]:
        """Bytes at the contexts that were asked, for the implementation that is advised; weights,
        keys and values also where there is none.
        """
        return [
            (one.phase, chosen, self.memory.need(chosen or any_of_them, one.phase, one.context))
            for one in self.decisions
            for chosen, any_of_them in [(self.advised(one), self.inquiry.implementations[0])]
        ]

    @property
    def sequences(self) -> Sequence[Sequences]:
        """How many fit, by keys and values alone, at the contexts that were asked."""
        caches = any(phase != "training" for phase in self.inquiry.phases)
        return [*map(self.memory.sequences, self.inquiry.contexts)] if caches else []

    @property
    def can_be_measured(self) -> bool:
        """Whether some layer's attention in some phase can."""
        return any(decision.choices for decision in self.decisions)

    def advised(self, decision: Decision) -> Implementation | None:
        """The fastest, at a tie the one of less memory; without any time, the one whose attention
        is known to need least.
        """
        if decision.chosen is not None:
            return decision.chosen.implementation
        needs = {
            implementation.name: need.attention_bytes
            for implementation in self.inquiry.implementations
            if (need := self.memory.need(implementation, decision.phase, decision.context))
        }
        known = {name: need for name, need in needs.items() if need is not None}
        least = min(known, key=known.__getitem__, default=None)
        return next((one for one in self.inquiry.implementations if one.name == least), None)

    @cached_property
    def recommended(self) -> list[tuple[str, tuple[Decision, ...]]]:
        """attn_implementation, and the decisions that it is the answer to."""
        decided = (decision for decision in self.decisions if decision.best is not None)
        return list(by(decided, lambda decision: decision.name_of_best).items())

    @property
    def runs(self) -> list[Run]:
        """Those that the answer's rows are from."""
        used = (cell.stored.run for cell in self.cells if cell.stored is not None)
        return list({id(run): run for run in used}.values())

    @property
    def cells(self) -> Iterator[Cell]:
        for decision in self.decisions:
            for choice in decision.choices:
                yield from choice.cells

    @property
    def disturbed(self) -> tuple[int, int]:
        """Of how many times most blocks were disturbed by other work, and of how many in all."""
        timed = [cell for cell in self.cells if cell.time_ms is not None]
        return sum(cell.disturbed for cell in timed), len(timed)

    @property
    def is_doubtful(self) -> bool:
        """A longer run, or one on an idle machine, may decide more."""
        return bool(self.disturbed[0]) or any(map(close_choices, self.decisions))

    @property
    def missing(self) -> list[Decision]:
        """Decisions in which some implementation has no row."""
        return [decision for decision in self.decisions if decision.missing]

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
            f" scores{_why(cell)}"
            for cell in self.cells
            if cell.implementation.name == "sdpa" and cell.kernel == "math"
        )
        return list(dict.fromkeys(found))

    @property
    def fallbacks(self) -> list[str]:
        """What it costs where sdpa cannot serve: transformers then takes eager by itself."""
        found = []
        for decision in self.decisions:
            by_name = {one.implementation.name: one for one in decision.choices}
            sdpa, eager = by_name.get("sdpa"), by_name.get("eager")
            if sdpa is None or eager is None or sdpa.lacking is None or decision.best is None:
                continue
            if sdpa.lacking.status == "unsupported" and eager.against is not None:
                found.append(
                    f"sdpa cannot serve {decision.phase}: {sdpa.lacking.reason}. A model that is"
                    f" asked for nothing else takes eager, {eager.against.value:.3g} times the time"
                    f" of {decision.best.implementation.name} in all layers"
                )
        return found


def _why(cell: Cell) -> str:
    """What usually makes torch's fused kernels refuse such a problem."""
    p = cell.asked.problem
    if p is None:
        return ""
    reasons = []
    if max(p["d_k"], p["d_v"]) > WIDEST_HEAD:
        reasons.append(f"heads are wider than {WIDEST_HEAD}")
    if p["d_k"] != p["d_v"]:
        reasons.append("keys and values differ in width")
    if p["kv_heads"] != p["heads"]:
        reasons.append("key and value heads are fewer")
    if p["dtype"] == "fp32":
        reasons.append("it is fp32")
    return f"; {', '.join(reasons)}" if reasons else ""


def advise(inquiry: Inquiry, rows: StoredRows) -> Advice:
    """Raises BadInput for a context beyond the model's own."""
    times = Times(rows)
    decisions = [
        decide(inquiry, rows, phase, context, times)
        for phase in inquiry.phases
        for context in inquiry.contexts
    ]
    return Advice(
        inquiry=inquiry,
        rows=rows,
        decisions=[one for one in decisions if one.choices or one.not_measured],
    )


def close_choices(decision: Decision) -> list[Choice]:
    """The fastest and those of which it is not decided; empty if it is clear."""
    undecided = [one for one in decision.ties if one.against and not one.against.is_decided]
    return [decision.best, *undecided] if decision.best is not None and undecided else []
