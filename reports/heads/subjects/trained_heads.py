"""What heads learn: steps until a task is learnt over their number, beside cost.

From the studies trained_heads and trained_head_width; what it says is limited to their tasks and
sizes. Runs of earlier versions trained every model for the same number of steps: they say which
numbers of heads learn faster, not which can learn, and are shown as quality at equal steps.
"""

from collections.abc import Iterator, Sequence
from math import isinf, isnan
from typing import Any

from ....harness.heads.findings import TrainedHeads, TrainedHeadWidth
from ....harness.rows.findings import findings_of
from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Card, Figure, Table, note, table_of
from ...formatting import length_text, list_text, plural
from ...quantity import Number, Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..few_heads import few_heads_text, times_of_fewest
from ..figures import (
    Axes,
    bounded,
    figure,
    learnt_text,
    percents,
    right_answers,
    seeds_text,
    steps_text,
    times_text,
)
from ..trained import ASKS, HeadCount, Learnt, TaskResult, results
from ._removed import fewer

TITLE = "What heads learn"
SECTION = "asked"
APART = True
ORDER = 11
STUDIES = (TrainedHeads.STUDY, TrainedHeadWidth.STUDY)
EQUAL_ONLY = (
    "Every number of heads was trained for the same number of steps. That says which learn faster,"
    " not which can learn: attnbench run what_heads_learn trains each until it has learnt its task"
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first run that trained several numbers of heads."""
    trained = [
        (caption, results(found, findings_of(TrainedHeadWidth, meta[name].get("studies"))))
        for name, caption, found in studied(TrainedHeads, meta)
    ]
    over_heads = [[one for one in found if len(one.counts) > 1] for _, found in trained]
    blocks = [block for caption, found in trained for block in _of_run(found, caption)]
    return Subject(
        card=next((_card(found) for found in over_heads if found), None),
        lines=tuple(answer(one) for _, found in trained for one in found),
        blocks=(*blocks, *failed(meta, *STUDIES)),
        lacking="Nothing was trained. A scenario requests it with studies: [trained_heads].",
    )


# ---- the answer ----------------------------------------------------------------------------------


def _card(found: Sequence[TaskResult]) -> Card:
    asked = [one for one in found if one.is_to_be_learnt]
    if not asked:
        return Card(
            title="Quality at equal steps",
            subtitle="by task and number of heads",
            sentence=f"{EQUAL_ONLY}.",
            picture=_at_equal_steps(found),
            wide=True,
        )
    return Card(
        title="How fast heads learn",
        subtitle="steps until a task is learnt, by task",
        sentence=few_heads_text(asked),
        picture=table_of(
            "Steps until learnt: the fewest heads against the number that is fastest",
            asked,
            {
                "task": lambda one: one.task,
                "fewest": lambda one: Number(plural(one.counts[0].heads, "head")),
                "learn it": lambda one: seeds_text(one.counts[0]),
                "in steps": lambda one: steps_text(one.counts[0]),
                "fastest": _fastest_text,
                "times the steps": lambda one: Number(_times_text(one)),
            },
        ),
        note=(
            "Learnt: the stated share of answers on new sequences is right at two looks in a row."
            " Seeds that have not learnt it within the limit count as more steps than that."
            " Intervals are of the median seed. Small models, so nothing follows for large ones."
        ),
        wide=True,
    )


def _fastest_text(one: TaskResult) -> Number:
    """`16 heads, 100 (80 to 120)`: all seeds of the fastest learn the task, or it says how many."""
    found, heads = one.fastest, plural(one.fastest.heads, "head")
    whole = found.learnt_seeds == len(found.until_learnt)
    return Number(", ".join((heads, *([] if whole else [seeds_text(found)]), steps_text(found))))


def _times_text(one: TaskResult) -> str:
    times = times_of_fewest(one)
    return "" if times is None or one.fastest is one.counts[0] else times_text(times)


def _first_text(one: TaskResult) -> str:
    """Several numbers of heads may need equally many steps, as looks are 20 steps apart."""
    steps = [count.steps.value for count in one.counts if count.steps]
    return ", as fast as any" if steps.count(min(steps)) > 1 else ", the fastest"


def answer(one: TaskResult) -> str:
    """`copy (how a sequence that begins again goes on): 1 head: 6 of 6 seeds learn it, in 420 (400
    to 480) steps; 16 heads, the fastest: ...`; without a goal what was right in the end.
    """
    asks, first, last = ASKS.get(one.task), one.counts[0], one.counts[-1]
    text = f"{one.task} ({asks})" if asks else one.task
    if not one.is_to_be_learnt:
        shares = [
            f"{percents(count.accuracy)} with {plural(count.heads, 'head')}"
            for count in ((first, last) if last is not first else (first,))
        ]
        steps = _steps(one)
        after = f" after {steps} steps, equal for all" if steps else ""
        return f"{text}: {' and '.join(shares)} of the answers are right{after}."
    parts = [
        f"{plural(count.heads, 'head')}{_first_text(one) * (count is one.fastest)}:"
        f" {learnt_text(count)}"
        for count in one.counts
        if count in (first, one.fastest, last)
    ]
    return f"{text}: {'; '.join(parts)}."


# ---- the details ---------------------------------------------------------------------------------


def _of_run(found: Sequence[TaskResult], of_run: str) -> Iterator[Block]:
    caption = f"{of_run} · {_sizes(found)}"
    asked = [one for one in found if one.is_to_be_learnt]
    yield note(
        "The models differ in their number of heads only: width, parameters and batches are the"
        " same, and d_model = heads × d_k, so that more heads are narrower ones. These are small"
        " models and artificial tasks: nothing follows for large models. "
        + (_training_text(asked) if asked else f"{EQUAL_ONLY}.")
    )
    if asked:
        yield _steps_until_learnt(asked, caption)
    yield _equal_steps(found, caption)
    yield from fewer(found, caption)


def _training_text(found: Sequence[TaskResult]) -> str:
    goals = [
        f"{one.task} {100 * (first.goal_ratio or 0):g} %, {length_text(first.limit_steps or 0)}"
        for one in found
        for first in one.counts[0].trainings[:1]
    ]
    return (
        "Each is trained until it has learnt its task, which is to say until the stated share of"
        " answers on new sequences is right at two looks in a row, or to a limit in steps:"
        f" {list_text(goals)}; then the learning rate falls to 0. Until then each number of"
        " heads has the rate with which it learnt the task in the fewest steps from other seeds;"
        " heads of d_k = d / 8 have these rates too, which were not looked for with them."
    )


def _sizes(found: Sequence[TaskResult]) -> str:
    counts = _counts(found)
    one, seeds = counts[0].trainings[0], {len(count.trainings) for count in counts}
    depths = sorted({f"{count.trainings[0].depth}" for count in counts})
    return (
        f"d_model {one.d_model}, {' or '.join(depths)} blocks, {one.tokens} tokens,"
        f" {' to '.join(dict.fromkeys(map(str, (min(seeds), max(seeds)))))} seeds"
    )


def _steps_until_learnt(found: Sequence[TaskResult], caption: str) -> Figure:
    """Both ways to have more heads: those that share d_model, and those of one width."""
    every: list[Learnt[Any]] = []
    for task in found:
        every += [*task.counts, *task.wide]
    return figure(
        "Steps until a task is learnt, over the number of heads",
        f"{caption} · median seed; bars: where it lies in 95 % of runs; a point at the limit has"
        " not learnt the task",
        {
            task.task: {
                name: {one.heads: _shown(one) for one in some if one.steps}
                for name, some in zip(ARMS, (task.counts, _with_shared(task)), strict=True)
                if some
            }
            for task in found
        },
        Axes("heads", "steps until learnt", x_scale="log", y_scale="log"),
        table_of(
            "Learning and its cost over the number of heads",
            every,
            {
                "task, heads": lambda one: one.label,
                "d_k": lambda one: Quantity(one.trainings[0].d_k),
                "parameters": lambda one: Quantity(one.trainings[0].parameter_count),
                "learning rate": lambda one: Quantity(one.trainings[0].learning_rate),
                "learn it": seeds_text,
                "steps until learnt": steps_text,
                "right answers in the end": lambda one: percents(one.accuracy),
                "time per step": lambda one: bounded(one.step, "ms"),
                "memory of a step": lambda one: Quantity(one.peak_bytes, "bytes"),
            },
        ),
        names=ARMS,
        same_y=False,
    )


ARMS = ("d_k = d / h", "d_k = d / 8")


def _with_shared(task: TaskResult) -> list[Learnt[Any]]:
    """Heads of one width with the number of heads that has it in `counts`."""
    widths = {one.trainings[0].d_k for one in task.wide}
    return [*task.wide, *(one for one in task.counts if one.trainings[0].d_k in widths)]


def _shown(one: Learnt[Any]) -> Interval | None:
    """At the limit where the median seed has not learnt the task."""
    limit = float(one.limit_steps or 0)
    return one.steps and one.steps.mapped(lambda end: limit if isinf(end) else end)


def _equal_steps(found: Sequence[TaskResult], caption: str) -> Figure:
    return figure(
        "Quality at equal steps, over the number of heads",
        f"{caption} · new sequences; bars are 95 % intervals over seeds",
        {
            f"{one.task}, {_steps(one) or 'equal'} steps": {
                "accuracy": {c.heads: _at_equal_steps_of(one, c) for c in one.counts}
            }
            for one in found
        },
        right_answers("heads", "log"),
        _at_equal_steps(found),
    )


def _at_equal_steps(found: Sequence[TaskResult]) -> Table:
    after = ", those after which the fastest number of heads has learnt the task"
    return table_of(
        f"Quality at equal steps{after if any(one.is_to_be_learnt for one in found) else ''}",
        [(one, count) for one in found for count in one.counts],
        {
            "task, heads": lambda of: of[1].label,
            "steps": lambda of: _steps(of[0]),
            "right answers": lambda of: percents(_at_equal_steps_of(*of)),
            "loss in the end, nats": lambda of: bounded(of[1].loss, least=0.0),
            "time per step": lambda of: bounded(of[1].step, "ms"),
            "memory of a step": lambda of: Quantity(of[1].peak_bytes, "bytes"),
        },
        optional=("steps",),
    )


def _steps(one: TaskResult) -> Number:
    return Number() if isnan(one.equal_steps) else length_text(round(one.equal_steps))


def _at_equal_steps_of(one: TaskResult, count: HeadCount) -> Interval:
    return count.accuracy_at(one.equal_steps) if one.is_to_be_learnt else count.accuracy


def _counts(found: Sequence[TaskResult]) -> list[HeadCount]:
    return [count for one in found for count in one.counts]
