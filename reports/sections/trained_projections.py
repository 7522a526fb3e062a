"""What models answer that were trained with Linformer's projections, and what a step takes them."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.trained_projections import NAMES, Attention, trained_attentions
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Figure, Panel, Series, Table, Text, note
from ..formatting import bytes_text, list_text
from ._interval_texts import percents, share_bound, times, with_range

TITLE = "Linformer in trained models"
ORDER = 45
NEEDS = ()


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    """Of the first run with the study."""
    for name, run in meta.items():
        found = trained_attentions(run)
        if not found:
            continue
        tasks = list(dict.fromkeys(one.task for one in found))
        for task in tasks:
            yield Text(text=_answer([one for one in found if one.task == task]))
        yield _quality_and_time(found, tasks, run_caption(run, name if len(meta) > 1 else ""))
        yield note(
            "These models see the whole sequence. A causal model cannot have such projections: a"
            " projected key is a mixture of all keys, later ones too. So only tasks are asked whose"
            " answer is not in the tokens themselves; the next token of a text is not one of them."
            " Small models, one size and one rank: nothing follows for large ones."
        )
        return


def _answer(found: Sequence[Attention]) -> str:
    """`Right answers in recall after training, rank 12 for 48 tokens: exact: 100.0 % (100.0 to
    100.0); means of neighbours: 77.5 % ...`.
    """
    sizes = next((one.trainings[0] for one in found if one.trainings[0].get("rank")), None)
    rank = "" if sizes is None else f", rank {sizes['rank']} for {sizes.get('tokens')} tokens"
    shares = [f"{one.name}: {percents(one.accuracy)}" for one in found]
    return f"Right answers in {found[0].task} after training{rank}: {'; '.join(shares)}."


def _quality_and_time(found: Sequence[Attention], tasks: Sequence[str], caption: str) -> Figure:
    one = found[0].trainings[0]
    return Figure(
        title=f"Linformer in trained models, {list_text(tasks)}: up is better, left is cheaper",
        caption=(
            f"{caption} · {one.get('heads')} heads, d_model {one.get('d_model')},"
            f" {len(found[0].trainings)} seeds; bars are 95 % intervals over seeds"
        ),
        description=(
            "The share of right answers over the time of a training step, one panel per task, a"
            " point for exact attention and one for each way to project keys and values. The table"
            " has every number."
        ),
        panels=tuple(_panel(task, [one for one in found if one.task == task]) for task in tasks),
        table=Table(
            title="Exact attention and Linformer's projections in trained models",
            columns=(
                *("task, attention", "right answers", "points below exact"),
                *("time per step", "times that of exact", "memory of a step"),
            ),
            rows=tuple(_row(one) for one in found),
        ),
        names=tuple(dict.fromkeys(NAMES[one.attention] for one in found if one.attention in NAMES)),
    )


def _panel(task: str, found: Sequence[Attention]) -> Panel:
    return Panel(
        x_label="ms per training step",
        y_label="right answers",
        unit="share",
        x_scale="linear",
        y_scale="linear",
        title=task,
        series=tuple(
            Series(
                backend=one.name,
                kind="measured",
                x=(one.step.value,),
                y=(one.accuracy.value,),
                low=(share_bound(one.accuracy.low),),
                high=(share_bound(one.accuracy.high),),
            )
            for one in found
        ),
    )


def _row(one: Attention) -> tuple[str, ...]:
    return (
        f"{one.task}, {one.name}",
        percents(one.accuracy),
        "" if one.less is None else with_range(one.less),
        times(one.step),
        "" if one.time_ratio is None else with_range(one.time_ratio),
        bytes_text(one.peak_bytes),
    )
