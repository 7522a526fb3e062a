"""What models answer that were trained with Linformer's projections, and what a step takes them.

From the study trained_projections, one finding per training. Trainings of one seed saw the same
batches, so that attentions are compared seed by seed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....harness.learning.findings import TrainedProjections
from ....harness.stats.intervals import Interval, ratio_interval
from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import Figure, note, table_of
from ...formatting import list_text
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import bounded, figure, percents, right_answers, seeds_text, steps_text
from ..trained import Learnt, Trainings

TITLE = "Linformer in trained models"
SECTION = "asked"
PAGE = "learning"
ORDER = 46
STUDIES = (TrainedProjections.STUDY,)
EXACT = "exact"
NAMES = {
    EXACT: "exact",
    "pooled": "means of neighbours",
    "trained": "trained, from means",
    "trained_from_random": "trained, from random",
    "random": "random",
}
"""In the order in which attentions are shown; others follow."""
REMARK = (
    "These models see the whole sequence. A causal model cannot have such projections: a projected"
    " key is a mixture of all keys, later ones too. So only tasks are asked whose answer is not in"
    " the tokens themselves; the next token of a text is not one of them. Small models, one size"
    " and one rank: nothing follows for large ones."
)


@dataclass(frozen=True, kw_only=True)
class Attention(Learnt[TrainedProjections]):
    """One task with one attention. `exact`: the exact one; None for itself, or without one."""

    attention: str
    exact: Trainings[TrainedProjections] | None

    @property
    def name(self) -> str:
        return NAMES.get(self.attention, self.attention)

    @property
    def less(self) -> Interval | None:
        """Points of accuracy below the exact one, seed by seed."""
        exact = self.exact
        return exact.more(self, "accuracy_points") if exact else None

    @property
    def time_ratio(self) -> Interval | None:
        """Of a step, over the exact one."""
        pairs = self.pairs(self.exact) if self.exact else []
        own, others = ([[pair[at].step_ms or []] for pair in pairs] for at in (0, 1))
        return ratio_interval(own, others) if pairs else None


def trained_attentions(found: Iterable[TrainedProjections]) -> dict[str, list[Attention]]:
    """By task."""
    by_task = {}
    for task, some in by(found, lambda one: one.task).items():
        trainings = by(some, lambda one: one.attention)
        exact = Trainings(trainings=trainings[EXACT]) if EXACT in trainings else None
        by_task[task] = [
            Attention(
                task=task,
                heads=trainings[attention][0].heads,
                attention=attention,
                trainings=trainings[attention],
                exact=None if attention == EXACT else exact,
            )
            for attention in (*NAMES, *sorted(trainings.keys() - NAMES.keys()))
            if attention in trainings
        ]
    return by_task


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """Of the first run with the study."""
    for _, caption, trainings in studied(TrainedProjections, meta):
        found = trained_attentions(trainings)
        return Subject(
            lines=tuple(map(_answer, found.values())),
            blocks=(_quality_and_time(found, caption), note(REMARK)),
        )
    return Subject(
        blocks=tuple(failed(meta, TrainedProjections.STUDY)),
        lacking=f"No model. A scenario requests them with studies: [{TrainedProjections.STUDY}].",
    )


def _answer(found: Sequence[Attention]) -> str:
    """`Right answers in recall after training, rank 12 for 48 tokens: exact: 100.0 % (100.0 to
    100.0); means of neighbours: 77.5 % ...`.
    """
    sizes = next((one.trainings[0] for one in found if one.trainings[0].rank), None)
    rank = "" if sizes is None else f", rank {sizes.rank} for {sizes.tokens} tokens"
    shares = [f"{one.name}: {percents(one.accuracy)}" for one in found]
    return f"Right answers in {found[0].task} after training{rank}: {'; '.join(shares)}."


def _quality_and_time(found: dict[str, list[Attention]], caption: str) -> Figure:
    every = [one for some in found.values() for one in some]
    sizes = every[0].trainings[0]
    return figure(
        f"Linformer in trained models, {list_text([*found])}: up is better, left is cheaper",
        f"{caption} · {sizes.heads} heads, d_model {sizes.d_model},"
        f" {len(every[0].trainings)} seeds; bars are 95 % intervals over seeds",
        {
            task: {one.name: {one.step.value: one.accuracy} for one in some}
            for task, some in found.items()
        },
        right_answers("ms per training step"),
        table_of(
            "Exact attention and Linformer's projections in trained models",
            every,
            {
                "task, attention": lambda one: f"{one.task}, {one.name}",
                "learn it": seeds_text,
                "steps until learnt": steps_text,
                "right answers": lambda one: percents(one.accuracy),
                "points below exact": lambda one: bounded(one.less),
                "time per step": lambda one: bounded(one.step, "ms"),
                "times that of exact": lambda one: bounded(one.time_ratio),
                "memory of a step": lambda one: Quantity(one.peak_bytes, "bytes"),
            },
            optional=("learn it", "steps until learnt"),
        ),
        names=dict.fromkeys(one.name for one in every if one.attention in NAMES),
    )
