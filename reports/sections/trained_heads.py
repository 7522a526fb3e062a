"""What heads learn: quality over their number beside cost, trained maps, fewer heads.

From the study trained_heads. What it says is limited to the tasks and sizes of that study.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ...harness.stats.intervals import Interval
from ..analysis.checkpoint_heads import STUDY as CHECKPOINTS
from ..analysis.checkpoint_heads import looked_at
from ..analysis.trained_heads import (
    ASKS,
    MARGIN_RATIO,
    STUDY,
    HeadCount,
    TaskResult,
    drawn,
    mean_of,
    results,
    share_of,
    spread_of,
)
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Figure, Panel, Series, Table, Text, note
from ..formatting import bytes_text, list_text
from ._checkpoint_heads import of_checkpoints
from ._interval_texts import percent, percents, share_bound, times, with_range
from ._trained_maps import maps_of
from ._trained_noise import noisy
from ._trained_pruning import pruned, smaller

TITLE = "What heads learn"
ORDER = 48
NEEDS = ()
STUDIES = (STUDY, CHECKPOINTS)
READING = (
    "How to read the maps: a square is a head, a row is a token that asks, a column a token that it"
    " may look at; none looks ahead. Bright is much weight. A bright line beside the diagonal is a"
    " head that always looks the same number of places back; a bright column is a token that all"
    " look at; a dim triangle is a head that averages over everything before it, as heads do before"
    " they are trained."
)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    shown = False
    for name, run in meta.items():
        found = results(run)
        if found:
            shown = True
            yield from _of_run(found, run, name if len(meta) > 1 else "")
        if models := looked_at(run):
            shown = True
            caption = run_caption(run, name if len(meta) > 1 else "")
            yield from of_checkpoints(models, caption, "" if found else READING)
        reasons = [one for one in run.get("unanswered", []) if one.get("study") in STUDIES]
        for one in reasons[:1]:
            shown = True
            more = f", and {len(reasons) - 1} more parts" if len(reasons) > 1 else ""
            why = one.get("reason") or one.get("status")
            yield note(f"{one.get('case')} found nothing: {why}{more}.")
    if not shown:
        yield note(
            "Nothing was trained. A scenario requests it with studies: [trained_heads]; a model of"
            " your own is looked at with --checkpoint."
        )


def _of_run(found: list[TaskResult], run: Mapping[str, Any], name: str) -> Iterator[Block]:
    caption = f"{run_caption(run, name)} · {_sizes(found)}"
    for one in found:
        yield Text(text=answer(one))
    yield note(
        "The models differ in their number of heads only: width, parameters, steps and batches are"
        " the same, and so is d_model = heads × d_k. A number of heads is as good as the best if"
        f" the interval of the difference, seed by seed, is within {100 * MARGIN_RATIO:g} points of"
        " accuracy. These are small models and artificial tasks: another size, another task or"
        " longer training may need another number of heads, and nothing follows for large models."
    )
    yield _over_heads(found, caption)
    yield _againsttimes(found, caption)
    chosen = [pair for one in found if (pair := drawn(one)) is not None]
    if chosen:
        yield note(READING)
    for pair in chosen:
        yield maps_of(*pair, caption=run_caption(run, name))
    yield _metrics(found)
    if (figure := pruned(found, caption)) is not None:
        yield figure
    if (figure := smaller(found, caption)) is not None:
        yield figure
    yield noisy(found, caption)


def answer(one: TaskResult) -> str:
    """`six_relations (which bits ...): 8 heads are enough, 98.9 % (98.1 to 99.7) of the answers are
    right, 4.8 % with 1. 1, 2 and 4 are worse.`
    """
    enough, first, asks = one.enough, one.counts[0], ASKS.get(one.task)
    what = f"{one.task} ({asks})" if asks else one.task
    heads = f"{enough.heads} head{'s' if enough.heads > 1 else ''}"
    with_one = (
        f", {percent(first.accuracy.value)} with {first.heads}" if enough is not first else ""
    )
    text = f"{what}: {heads} {'are' if enough.heads > 1 else 'is'} enough"
    text += f", {percents(enough.accuracy)} of the answers are right{with_one}."
    if enough.standing == "equal":
        text += f" The best, {one.best.heads}, is not better by {100 * MARGIN_RATIO:g} points."
    if worse := one.of("worse"):
        verb = "is" if len(worse) == 1 else "are"
        text += f" {list_text([f'{heads}' for heads in worse])} {verb} worse."
    if undecided := one.of("undecided"):
        text += f" Not decided for {list_text([f'{heads}' for heads in undecided])}."
    return text


def _sizes(found: Sequence[TaskResult]) -> str:
    one = found[0].counts[0].trainings[0]
    seeds = [len(count.trainings) for task in found for count in task.counts]
    few, many = min(seeds), max(seeds)
    depths = sorted(
        {f"{count.trainings[0].get('depth')}" for task in found for count in task.counts}
    )
    return (
        f"d_model {one.get('d_model')}, {' or '.join(depths)} blocks, {one.get('tokens')} tokens,"
        f" {few if few == many else f'{few} to {many}'} seeds"
    )


# ---- quality and cost ----------------------------------------------------------------------------


def _over_heads(found: Sequence[TaskResult], caption: str) -> Figure:
    panels = [
        Panel(
            x_label="heads",
            y_label="right answers",
            unit="share",
            y_scale="linear",
            title=one.task,
            series=(_series([(float(c.heads), c.accuracy) for c in one.counts]),),
        )
        for one in found
    ]
    needs = [f"{one.task} {one.enough.heads}" for one in found]
    return Figure(
        title=f"The fewest heads that are enough: {list_text(needs)}",
        caption=f"{caption} · new sequences; bars are 95 % intervals over seeds",
        description=(
            "The share of right answers over the number of heads, one panel per task, with"
            " intervals over seeds. The table has every number."
        ),
        panels=tuple(panels),
        table=Table(
            title="Quality and cost over the number of heads",
            columns=(
                *("task, heads", "right answers", "loss, nats", "against the best"),
                *("time per step", "memory of a step", "worth its time"),
            ),
            rows=tuple(_row(count) for one in found for count in one.counts),
        ),
    )


def _row(one: HeadCount) -> tuple[str, ...]:
    standing = {"best": "the best", "equal": "as good", "worse": "worse"}.get(
        one.standing, "not decided"
    )
    return (
        f"{one.task}, {one.heads}",
        percents(one.accuracy),
        with_range(one.loss, least=0.0),
        standing,
        times(one.step),
        bytes_text(one.peak_bytes),
        "yes" if one.is_worth else "no",
    )


def _againsttimes(found: Sequence[TaskResult], caption: str) -> Figure:
    """The Pareto picture: each point a number of heads."""
    panels = []
    for one in found:
        timed = sorted((c for c in one.counts if c.step.units), key=lambda count: count.step.value)
        panels.append(
            Panel(
                x_label="ms per training step",
                y_label="right answers",
                unit="share",
                x_scale="linear",
                y_scale="linear",
                title=_front_text(one),
                series=(_series([(c.step.value, c.accuracy) for c in timed]),),
            )
        )
    return Figure(
        title="What quality costs in time: up is better, left is cheaper",
        caption=f"{caption} · a point per number of heads, from left to right in order of time",
        description=(
            "The share of right answers over the time of a training step, one panel per task, one"
            " point per number of heads. A number of heads is worth its time if it is surely more"
            " accurate than every faster one, seed by seed. The table has every number."
        ),
        panels=tuple(panels),
        table=Table(
            title="Numbers of heads that are surely more accurate than every faster one",
            columns=("task", "heads", "time per step", "right answers"),
            rows=tuple(
                (one.task, f"{c.heads}", times(c.step), percents(c.accuracy))
                for one in found
                for c in one.counts
                if c.is_worth
            ),
            folded=True,
        ),
    )


def _front_text(one: TaskResult) -> str:
    """`copy: worth it 1, 2 and 4`."""
    names = [f"{count.heads}" for count in one.counts if count.is_worth]
    return f"{one.task}: worth it {list_text(names)}"


def _series(points: Sequence[tuple[float, Interval]]) -> Series:
    return Series(
        backend="accuracy",
        kind="measured",
        x=tuple(x for x, _ in points),
        y=tuple(one.value for _, one in points),
        low=tuple(share_bound(one.low) for _, one in points),
        high=tuple(share_bound(one.high) for _, one in points),
    )


# ---- what heads look at --------------------------------------------------------------------------


def _metrics(found: Sequence[TaskResult]) -> Table:
    rows = []
    for one in found:
        for count in one.counts:
            for when in ("before", "after"):
                rows.append(
                    (
                        f"{one.task}, {count.heads}, {when}",
                        with_range(mean_of(count, "entropy_nats", when)),
                        with_range(mean_of(count, "distance_tokens", when)),
                        with_range(spread_of(count, "distance_tokens", when)),
                        percents(share_of(count, "previous_share", when)),
                        percents(share_of(count, "induction_share", when)),
                        with_range(mean_of(count, "pattern_difference", when)),
                        with_range(mean_of(count, "output_similarity", when)),
                        with_range(mean_of(count, "output_rank", when)),
                    )
                )
    return Table(
        title="Heads before and after training, means over heads",
        columns=(
            *("task, heads, when", "entropy, nats", "distance, tokens"),
            "nearest to farthest head, tokens",
            *("previous-token heads", "induction heads", "difference of patterns, bits"),
            *("similarity of outputs", "rank of outputs"),
        ),
        rows=tuple(rows),
        folded=True,
    )
