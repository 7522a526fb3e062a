"""Norm of d loss / d x_t over the distance, at first weights and after training, model by model."""

from collections.abc import Iterator, Sequence
from math import exp

from ....harness.learning.findings import GradientDistance, TrainedGradients
from ....harness.rows.findings import findings_of
from ...data.row_groups import Row
from ...data.run_meta import Meta, run_caption
from ...elements import Block, Figure, Panel, Series, table_of
from ...formatting import list_text, number_text
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed
from ..gradients import TrainedModel, trained_models
from ..seeds import bounded, line, percents

TITLE = "Gradients over distance"
ORDER = 50
NEEDS = ()


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(
        blocks=(*_figures(meta), *failed(meta, GradientDistance.STUDY, TrainedGradients.STUDY)),
        lacking=f"No gradients. A scenario requests them with studies: [{GradientDistance.STUDY}].",
    )


def _figures(meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        caption = run_caption(run, name if len(meta) > 1 else "")
        found = findings_of(GradientDistance, run.get("studies"))
        if found := [one for one in found if one.gradient_norms]:
            yield _at_first_weights(found, caption)
        if trained := trained_models(run.get("studies")):
            yield _after_training(trained, caption)


def _at_first_weights(found: Sequence[GradientDistance], caption: str) -> Figure:
    """The longest sequence of each model."""
    longest = {one.model: one for one in sorted(found, key=lambda one: one.seq_len)}
    fades = {name: one.fade or (0.0, 0.0, 0.0) for name, one in longest.items()}
    fading = [name for name, (_, _, high) in fades.items() if high < 0]
    return Figure(
        title=(
            f"The gradient fades with the distance through {' and '.join(fading)}"
            if fading
            else "No model's gradient fades with the distance"
        ),
        caption=f"{caption} · random first weights, nothing trained; geometric means over draws",
        description=(
            "The norm of the gradient of the last output by each token, over how many tokens it"
            " lies before, on a logarithmic axis: one panel per model. The table has the fade per"
            " token with its interval, and how many operations lie between."
        ),
        panels=tuple(
            _panel(name, fades[name][0], fades[name][2], _norms(name, one))
            for name, one in longest.items()
        ),
        table=table_of(
            "Gradients and paths over the sequence length",
            found,
            {
                "model, N": lambda one: f"{one.model}, {one.seq_len}",
                "ln of the gradient, change per token": lambda one: Quantity(
                    one.fade_per_token, "plain", one.fade_per_token_low, one.fade_per_token_high
                ),
                "shortest path, operations": lambda one: one.shortest_path_steps,
                "longest path": lambda one: one.longest_path_steps,
                "reach, tokens": lambda one: one.reach_tokens,
            },
        ),
    )


def _norms(name: str, one: GradientDistance) -> Series:
    norms = one.gradient_norms or []
    return Series(
        backend=name,
        kind="measured",
        x=tuple(float(place) for place in range(len(norms))),
        # Exact zeros, where nothing arrives, have no place on a logarithmic axis.
        y=tuple(norm if norm > 0 else None for norm in norms),
    )


def _after_training(found: Sequence[TrainedModel], caption: str) -> Figure:
    fades = {one.model: one.fade("after") for one in found}
    fading = [name for name, fade in fades.items() if fade.high < 0]
    sizes = found[0].trainings[0]
    return Figure(
        title=(
            "After training the gradient by the asked token fades with the distance in"
            f" {list_text(fading)}"
            if fading
            else "After training no model's gradient by the asked token fades with the distance"
        ),
        caption=(
            f"{caption} · {sizes.seq_len} tokens, of which one is marked and asked for;"
            f" trained for {sizes.steps} steps, {len(found[0].trainings)} seeds"
        ),
        description=(
            "The norm of the gradient of the right answer by the marked token, over how many tokens"
            " it lies before the question, on a logarithmic axis: one panel per model, geometric"
            " means with intervals over seeds. The table has the change per token before and after"
            " training, and how many answers are right."
        ),
        panels=tuple(
            _panel(name, fade.value, fade.high, line(name, one.norms()))
            for one in found
            for name, fade in [(one.model, fades[one.model])]
        ),
        table=table_of(
            "Change of ln of the gradient per token, before and after training",
            found,
            {
                "model": lambda one: one.model,
                "right answers": lambda one: percents(one.accuracy),
                "at first weights": lambda one: bounded(one.fade("before")),
                "after training": lambda one: bounded(one.fade("after")),
            },
        ),
    )


def _panel(model: str, fade: float, high: float, series: Series) -> Panel:
    """`fade`: of ln norm; its title has the factor from one token to the one before."""
    factor = number_text(exp(fade)) if abs(fade) < 100 else ""
    return Panel(
        x_label="distance in tokens",
        y_label="norm of the gradient",
        unit="plain",
        x_scale="linear",
        title=f"{model}: × {factor} per token" if high < 0 and factor else model,
        series=(series,),
    )
