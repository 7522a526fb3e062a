"""What models answer that were trained with Linformer's projections, and what a step takes them.

From the study trained_projections, one finding per training. Trainings of one seed saw the same
batches, so that attentions are compared seed by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....harness.learning.findings import TrainedProjections
from ....harness.rows.findings import findings_of
from ....harness.stats.intervals import Interval, latency_interval, mean_interval, ratio_interval
from ...data.row_groups import Row
from ...data.run_meta import Meta, run_caption
from ...elements import Figure, Table, note
from ...formatting import bytes_text, list_text
from ...subjects import Subject
from ...subjects._studies import failed
from ..seeds import line, percents, right_answers, times, with_range

TITLE = "Linformer in trained models"
ORDER = 46
NEEDS = ()
EXACT = "exact"
NAMES = {
    EXACT: "exact",
    "pooled": "means of neighbours",
    "trained": "trained, from means",
    "trained_from_random": "trained, from random",
    "random": "random",
}
"""In the order in which attentions are shown; others follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The trainings of one task with one attention. `less`: points of accuracy below the exact one,
    seed by seed; `time_ratio`: of a step, over the exact one; both None for the exact one itself.
    """

    task: str
    attention: str
    trainings: tuple[TrainedProjections, ...]
    accuracy: Interval
    step: Interval
    peak_bytes: float | None
    less: Interval | None
    time_ratio: Interval | None

    @property
    def name(self) -> str:
        return NAMES.get(self.attention, self.attention)


def trained_attentions(studies: object) -> dict[str, list[Attention]]:
    """By task."""
    found: dict[str, dict[str, list[TrainedProjections]]] = {}
    for one in findings_of(TrainedProjections, studies):
        found.setdefault(one.task, {}).setdefault(one.attention, []).append(one)
    return {
        task: [
            _attention(task, attention, some[attention], some.get(EXACT, []))
            for attention in (*NAMES, *sorted(some.keys() - NAMES.keys()))
            if attention in some
        ]
        for task, some in found.items()
    }


def _attention(
    task: str,
    attention: str,
    found: Sequence[TrainedProjections],
    exact: Sequence[TrainedProjections],
) -> Attention:
    by_seed = {one.train_seed: one for one in exact}
    pairs = [(one, by_seed[one.train_seed]) for one in found if one.train_seed in by_seed]
    less = time_ratio = None
    if attention != EXACT and pairs:
        points = [100 * (other.accuracy_ratio - one.accuracy_ratio) for one, other in pairs]
        less = mean_interval(points, "seed")
        own, others = ([[each.step_ms] for each in some] for some in zip(*pairs, strict=True))
        time_ratio = ratio_interval(own, others)
    return Attention(
        task=task,
        attention=attention,
        trainings=tuple(found),
        accuracy=mean_interval([one.accuracy_ratio for one in found], "seed"),
        step=latency_interval([[one.step_ms] for one in found]),
        peak_bytes=max((one.step_peak_bytes for one in found if one.step_peak_bytes), default=None),
        less=less,
        time_ratio=time_ratio,
    )


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """Of the first run with the study."""
    for name, run in meta.items():
        if found := trained_attentions(run.get("studies")):
            return Subject(
                lines=tuple(map(_answer, found.values())),
                blocks=(
                    _quality_and_time(found, run_caption(run, name if len(meta) > 1 else "")),
                    note(
                        "These models see the whole sequence. A causal model cannot have such"
                        " projections: a projected key is a mixture of all keys, later ones too. So"
                        " only tasks are asked whose answer is not in the tokens themselves; the"
                        " next token of a text is not one of them. Small models, one size and one"
                        " rank: nothing follows for large ones."
                    ),
                ),
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
    return Figure(
        title=f"Linformer in trained models, {list_text([*found])}: up is better, left is cheaper",
        caption=(
            f"{caption} · {sizes.heads} heads, d_model {sizes.d_model},"
            f" {len(every[0].trainings)} seeds; bars are 95 % intervals over seeds"
        ),
        description=(
            "The share of right answers over the time of a training step, one panel per task, a"
            " point for exact attention and one for each way to project keys and values. The table"
            " has every number."
        ),
        panels=tuple(
            right_answers(
                task,
                "ms per training step",
                [line(one.name, {one.step.value: one.accuracy}, of_shares=True) for one in some],
            )
            for task, some in found.items()
        ),
        table=Table(
            title="Exact attention and Linformer's projections in trained models",
            columns=(
                *("task, attention", "right answers", "points below exact"),
                *("time per step", "times that of exact", "memory of a step"),
            ),
            rows=tuple(
                (
                    f"{one.task}, {one.name}",
                    percents(one.accuracy),
                    with_range(one.less),
                    times(one.step),
                    with_range(one.time_ratio),
                    bytes_text(one.peak_bytes),
                )
                for one in every
            ),
        ),
        names=tuple(dict.fromkeys(NAMES[one.attention] for one in every if one.attention in NAMES)),
    )
