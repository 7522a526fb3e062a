"""What heads learn: learning curves, and steps until a task is learnt, by number of heads.

From the study trained_heads; what it says holds for its tasks and sizes. A seed that has not learnt
its task within the limit took more steps, nobody knows how many more.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import inf, isfinite, isinf
from statistics import median
from typing import NamedTuple

import pandas as pd

from ....harness.heads.findings import TrainedHeads
from ....harness.rows.findings import findings_of
from ....harness.stats.counted import median_bounds
from ....harness.stats.intervals import latency_interval, mean_interval
from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import Block, Card, Figure, Marked, Table, Text, note, table_of
from ...formatting import length_text, plural
from ...quantity import Cell, Number, Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import Axes, bounded, figure

TITLE = "What heads learn"
SECTION = "asked"
APART = True
ORDER = 11
STUDIES = (TrainedHeads.STUDY,)
DRAWN_STEPS = {20 * many << power for many in (1, 3) for power in range(8)}
ACCURACY = Axes("training steps", "right answers", "share", x_scale="log")
LOSS = Axes("training steps", "loss, nats", x_scale="log")
READING = (
    "The models of a task differ in their number of heads only: parameters and batches are the"
    " same, and a head has the width d_model / heads. A line is the median seed on new sequences."
    " Learnt: the stated share of their answers is right at two looks in a row, 20 steps apart. A"
    " seed that does not get there within the limit counts as more steps. Intervals are of the"
    " median seed. Models of this size say nothing about large ones."
)


class Trained(NamedTuple):
    """Trainings of a task that differ in their seed only, at least one."""

    task: str
    heads: int
    seeds: Sequence[TrainedHeads]

    @property
    def label(self) -> str:
        return f"{self.task}, {plural(self.heads, 'head')}"

    @property
    def steps(self) -> list[float]:
        """Until learnt; infinite beyond the limit."""
        return [inf if one.learnt_steps is None else one.learnt_steps for one in self.seeds]

    @property
    def learn(self) -> Number:
        return Number(f"{sum(map(isfinite, self.steps))} of {plural(len(self.seeds), 'seed')}")

    def steps_text(self, *, bounds: bool = True) -> Number:
        """`160 (140 to 200)`; `400 (300 to > 800)` and `> 800` beyond the limit."""
        most = f"> {length_text(max(one.limit_steps for one in self.seeds))}"
        value, low, high = (
            most if isinf(one) else length_text(round(one)) if isfinite(one) else ""
            for one in (median(self.steps), *median_bounds(self.steps))
        )
        return Number(f"{value} ({low} to {high})" if bounds and low != high else value)

    def curve(self, looked: str) -> dict[int, float]:
        """Of the median seed at each look; a seed that has ended stays as it ended."""
        seeds = [pd.Series(one[looked], index=one.looked_steps) for one in self.seeds]
        found = pd.concat(seeds, axis=1).sort_index().ffill().median(axis=1)
        drawn = found.index.isin([*DRAWN_STEPS, found.index[-1]])
        return dict(zip(found.index[drawn].tolist(), found[drawn].tolist(), strict=True))


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first run that trained anything."""
    card: Card | None = None
    blocks: list[Block] = []
    for _, caption, every in studied(TrainedHeads, meta):
        found = trained(one for one in every if not one.is_tuning)
        tried = trained(one for one in every if one.is_tuning)
        card = card or _card(found, caption)
        blocks += [_table(found), *_removed(found), *_rates(found, tried), *_losses(found, caption)]
    return Subject(
        card=card,
        blocks=(*blocks, *_earlier(meta), *failed(meta, TrainedHeads.STUDY)),
        lacking="Nothing was trained. A scenario requests it with studies: [trained_heads].",
    )


def trained(found: Iterable[TrainedHeads]) -> list[Trained]:
    groups = by(found, lambda one: (one.task, one.heads))
    return [Trained(task, heads, seeds) for (task, heads), seeds in groups.items()]


# ---- the answer ----------------------------------------------------------------------------------


def _card(found: Sequence[Trained], caption: str) -> Card:
    return Card(
        title=TITLE,
        subtitle="right answers over training steps, by task and number of heads",
        sentence=_sentence(found),
        picture=_curves("Learning curves", found, caption, "looked_accuracy_ratio", ACCURACY),
        decisions=_steps(found),
        note=READING,
        wide=True,
    )


def _sentence(found: Sequence[Trained]) -> str:
    """`The median seed learns copy in 160 steps with 8 heads and in 260 with 1 head.`"""
    parts = []
    for task, some in by(found, lambda one: one.task).items():
        fastest = min(some, key=lambda one: median(one.steps))
        steps, heads = fastest.steps_text(bounds=False), plural(fastest.heads, "head")
        parts.append(f"{task} in {steps} steps with {heads}")
        if fastest is not some[0]:
            first = plural(some[0].heads, "head")
            parts[-1] += f" and in {some[0].steps_text(bounds=False)} with {first}"
    return f"The median seed learns {'; '.join(parts)}."


def _steps(found: Sequence[Trained]) -> Table:
    def cell(heads: int, of: tuple[str, Sequence[Trained]]) -> Number:
        return next((one.steps_text() for one in of[1] if one.heads == heads), Number())

    counts = sorted({one.heads for one in found})
    return table_of(
        "Steps until learnt",
        by(found, lambda one: one.task).items(),
        {
            "steps until learnt": lambda of: of[0],
            **{plural(heads, "head"): partial(cell, heads) for heads in counts},
        },
    )


def _curves(title: str, found: Sequence[Trained], caption: str, looked: str, axes: Axes) -> Figure:
    panels = {
        task: {plural(one.heads, "head"): one.curve(looked) for one in some}
        for task, some in by(found, lambda one: one.task).items()
    }
    names = dict.fromkeys(name for lines in panels.values() for name in lines)

    def cell(name: str, of: tuple[str, int]) -> Quantity:
        return Quantity(panels[of[0]].get(name, {}).get(of[1]), axes.unit)

    return figure(
        title,
        f"{caption} · the median of {plural(len(found[0].seeds), 'seed')}; one that has learnt its"
        " task stays as it was then",
        panels,
        axes,
        table_of(
            title,
            [
                (task, step)
                for task, lines in panels.items()
                for step in sorted(set().union(*lines.values()))
            ],
            {
                "task, steps": lambda of: f"{of[0]}, {length_text(of[1])}",
                **{name: partial(cell, name) for name in names},
            },
            folded=True,
        ),
        names=names,
        same_y=axes is ACCURACY,
    )


# ---- the details ---------------------------------------------------------------------------------


def _table(found: Sequence[Trained]) -> Table:
    return table_of(
        "Each number of heads at its learning rate",
        found,
        {
            "task, heads": lambda one: one.label,
            "learning rate": lambda one: Number(f"{one.seeds[0].learning_rate:g}"),
            "learn it": lambda one: one.learn,
            "steps until learnt": lambda one: one.steps_text(),
            "time per step": lambda one: bounded(
                latency_interval([[seed.step_ms] for seed in one.seeds]), "ms"
            ),
        },
    )


def _rates(found: Sequence[Trained], tried: Sequence[Trained]) -> Iterator[Table]:
    """Of the trainings from which the learning rates were chosen."""
    grid = {(one.task, one.heads): by(one.seeds, lambda o: o.learning_rate) for one in tried}

    def cell(rate: float, one: Trained) -> Cell | Marked:
        some = grid.get((one.task, one.heads), {}).get(rate)
        if some is None:
            return ""
        steps = one._replace(seeds=some).steps_text(bounds=False)
        return Marked(cell=steps, strong=rate == one.seeds[0].learning_rate)

    rates = sorted({rate for some in grid.values() for rate in some})
    if rates:
        yield table_of(
            "Steps until learnt by learning rate, median of seeds that nothing else is told of;"
            " the rate with the fewest steps was chosen",
            found,
            {
                "task, heads": lambda one: one.label,
                **{f"{rate:g}": partial(cell, rate) for rate in rates},
            },
        )


def _removed(found: Sequence[Trained]) -> Iterator[Table]:
    def loss(name: str) -> Callable[[Trained], Quantity]:
        return lambda one: bounded(mean_interval([seed[name] for seed in one.seeds], "seed"))

    some = [one for one in found if one.seeds[0].removed_during_loss_nats is not None]
    if some:
        yield table_of(
            "Loss on new sequences with half of the heads removed, nats",
            some,
            {
                "task, heads": lambda one: one.label,
                "removed": lambda one: Quantity(one.seeds[0].removed_heads, "count"),
                "with all heads": loss("whole_loss_nats"),
                "removed after training": loss("removed_after_loss_nats"),
                "removed during training": loss("removed_during_loss_nats"),
            },
        )


def _losses(found: Sequence[Trained], caption: str) -> Iterator[Figure]:
    if all(seed.looked_loss_nats for one in found for seed in one.seeds):
        yield _curves("Loss on new sequences", found, caption, "looked_loss_nats", LOSS)


def _earlier(meta: Meta) -> Iterator[Text]:
    every = [one for run in meta.values() for one in run.get("studies") or ()]
    count = sum(one.get("study") == TrainedHeads.STUDY for one in every)
    if left := count - len(findings_of(TrainedHeads, every)):
        yield note(f"Without a goal, as in earlier versions, left out: {plural(left, 'training')}.")
