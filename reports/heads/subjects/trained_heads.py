"""What heads learn: learning curves, and steps until a task is learnt, by number of heads.

From the study trained_heads; what it says holds for its tasks and sizes. A seed that has not learnt
its task within the limit took more steps, nobody knows how many more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isfinite, isinf
from statistics import median
from typing import NamedTuple

import pandas as pd

from ....harness.heads.findings import TrainedHeads
from ....harness.rows.findings import findings_of
from ....harness.stats.intervals import latency_interval, mean_interval, median_bounds
from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import Block, Card, Figure, Marked, Panel, Series, Table, Text, note, table_of
from ...formatting import length_text, plural
from ...quantity import Cell, Number, Quantity, Unit
from ...subjects import Subject
from ...subjects.studies import studied

TITLE = "What heads learn"
SECTION = "asked"
APART = True
ORDER = 11
STUDIES = (TrainedHeads.STUDY,)
DRAWN_STEPS = {20 * many << power for many in (1, 3) for power in range(8)}
READING = (
    "The models of a task differ only in their number of heads: parameters and batches are equal,"
    " and a head is d_model / heads wide. A line is the median seed on new sequences. Learnt: the"
    " stated share of answers is right at two looks in a row, 20 steps apart; a seed beyond the"
    " limit counts as more steps. Intervals are of the median seed. Models of this size say nothing"
    " about large ones."
)


class Trained(NamedTuple):
    """Trainings of a task that differ in their seed only, at least one."""

    task: str
    heads: int
    seeds: Sequence[TrainedHeads]

    @property
    def name(self) -> str:
        return plural(self.heads, "head")

    @property
    def label(self) -> str:
        return f"{self.task}, {self.name}"

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
    for caption, every in studied(TrainedHeads, meta):
        judged = by((one for one in every if not one.is_tuning), lambda one: one.task)
        found = [
            Trained(task, heads, seeds)
            for task, some in judged.items()
            for heads, seeds in sorted(by(some, lambda one: one.heads).items())
        ]
        if found:
            card = card or _card(found, caption)
            blocks += [_table(found), *_removed(found), *_rates(found, every)]
            blocks += _losses(found, caption)
    return Subject(
        card=card,
        blocks=(*blocks, *_earlier(meta)),
        lacking="Nothing was trained; `attnbench run what_heads_learn` trains.",
    )


def _of_cells(
    title: str, corner: str, cells: Mapping[tuple[str, str], Cell | Marked], *, folded: bool = False
) -> Table:
    """`cells`: by row and column."""
    rows, columns = (dict.fromkeys(place[axis] for place in cells) for axis in (0, 1))
    return Table(
        title=title,
        columns=(corner, *columns),
        rows=tuple((row, *(cells.get((row, one), "") for one in columns)) for row in rows),
        folded=folded,
    )


# ---- the answer ----------------------------------------------------------------------------------


def _card(found: Sequence[Trained], caption: str) -> Card:
    return Card(
        title=TITLE,
        subtitle="right answers over training steps, by task and number of heads",
        sentence=_sentence(found),
        picture=_curves(
            "Learning curves", found, caption, "looked_accuracy_ratio", "right answers", "share"
        ),
        decisions=_of_cells(
            "Steps until learnt",
            "steps until learnt",
            {(one.task, one.name): one.steps_text() for one in found},
        ),
        note=READING,
        wide=True,
    )


def _sentence(found: Sequence[Trained]) -> str:
    """`The median seed learns copy in 160 steps with 8 heads and in 260 with 1 head.`"""
    parts = []
    for task, some in by(found, lambda one: one.task).items():
        fewest = min(some, key=lambda one: median(one.steps))
        parts.append(f"{task} in {fewest.steps_text(bounds=False)} steps with {fewest.name}")
        if fewest is not some[0]:
            parts[-1] += f" and in {some[0].steps_text(bounds=False)} with {some[0].name}"
    return f"The median seed learns {'; '.join(parts)}."


def _curves(
    title: str, found: Sequence[Trained], caption: str, looked: str, y_label: str, unit: Unit
) -> Figure:
    panels = {
        task: {one.name: one.curve(looked) for one in some}
        for task, some in by(found, lambda one: one.task).items()
    }
    cells = {
        (f"{task}, {length_text(step)}", name): Quantity(curve[step], unit)
        for task, lines in panels.items()
        for step in sorted(set().union(*lines.values()))
        for name, curve in lines.items()
        if step in curve
    }
    return Figure(
        title=title,
        caption=f"{caption} · the median of {plural(len(found[0].seeds), 'seed')}; one that has"
        " learnt its task stays as it was then",
        panels=tuple(
            Panel(
                title=task,
                x_label="training steps",
                y_label=y_label,
                unit=unit,
                y_scale="linear",
                series=tuple(
                    Series(backend=name, kind="measured", x=tuple(curve), y=tuple(curve.values()))
                    for name, curve in lines.items()
                ),
            )
            for task, lines in panels.items()
        ),
        table=_of_cells(title, "task, steps", cells, folded=True),
        names=tuple(dict.fromkeys(one.name for one in found)),
        same_y=unit == "share",
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
            "time per step": lambda one: Quantity.of(
                latency_interval([[seed.step_ms] for seed in one.seeds]), "ms"
            ),
        },
    )


def _rates(found: Sequence[Trained], every: Sequence[TrainedHeads]) -> Iterator[Table]:
    """Of the trainings from which the learning rates were chosen."""
    chosen = {one.label: one.seeds[0].learning_rate for one in found}
    tuning = sorted((one for one in every if one.is_tuning), key=lambda one: one.learning_rate)
    cells: dict[tuple[str, str], Marked] = {}
    groups = by(tuning, lambda one: (one.learning_rate, one.task, one.heads))
    for (rate, task, heads), seeds in groups.items():
        one = Trained(task, heads, seeds)
        strong = rate == chosen.get(one.label)
        cells[one.label, f"{rate:g}"] = Marked(cell=one.steps_text(bounds=False), strong=strong)
    if cells:
        yield _of_cells(
            "Steps until learnt by learning rate, the median of other seeds; the rate with the"
            " fewest steps was chosen",
            "task, heads",
            cells,
        )


def _removed(found: Sequence[Trained]) -> Iterator[Table]:
    def loss(name: str) -> Callable[[Trained], Quantity]:
        return lambda one: Quantity.of(mean_interval([o[name] for o in one.seeds], "seed"), "plain")

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
        title = "Loss on new sequences"
        yield _curves(title, found, caption, "looked_loss_nats", "loss, nats", "plain")


def _earlier(meta: Meta) -> Iterator[Text]:
    every = [one for run in meta.values() for one in run.get("studies") or ()]
    count = sum(one.get("study") == TrainedHeads.STUDY for one in every)
    if left := count - len(findings_of(TrainedHeads, every)):
        yield note(f"{plural(left, 'training')} of earlier versions, without a goal, left out.")
