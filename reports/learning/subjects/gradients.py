"""Norm of d loss / d x_t over the distance, at first weights and after training, model by model."""

from collections.abc import Iterator, Sequence
from math import exp

from ....harness.learning.findings import GradientDistance, TrainedGradients
from ....harness.rows.findings import findings_of
from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...data.run_meta import Meta, run_caption
from ...elements import Block, Figure, Panel, Series, Table
from ...formatting import list_text, number_text, range_text
from ...subjects import Subject
from ...subjects._studies import failed
from ..gradients import TrainedModel, trained_models
from ..seeds import line, percents, with_range

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
    longest: dict[str, GradientDistance] = {}
    for one in found:
        best = longest.get(one.model)
        if best is None or one.seq_len > best.seq_len:
            longest[one.model] = one
    fades = {name: _bounded(one) for name, one in longest.items()}
    fading = [name for name, fade in fades.items() if fade.high < 0]
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
        panels=tuple(_panel(name, fades[name], _norms(name, one)) for name, one in longest.items()),
        table=Table(
            title="Gradients and paths over the sequence length",
            columns=(
                *("model, N", "ln of the gradient, change per token"),
                *("shortest path, operations", "longest path", "reach, tokens"),
            ),
            rows=tuple(
                (
                    f"{one.model}, {one.seq_len}",
                    number_text(one.fade_per_token)
                    + range_text(one.fade_per_token_low, one.fade_per_token_high),
                    *(
                        "" if count is None else str(count)
                        for count in (
                            *(one.shortest_path_steps, one.longest_path_steps),
                            one.reach_tokens,
                        )
                    ),
                )
                for one in found
            ),
        ),
    )


def _bounded(one: GradientDistance) -> Interval:
    value, low, high = one.fade or (0.0, 0.0, 0.0)
    return Interval(value=value, low=low, high=high, units=1)


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
    fading = [one.model for one in found if one.fade("after").high < 0]
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
            _panel(one.model, one.fade("after"), line(one.model, one.norms())) for one in found
        ),
        table=Table(
            title="Change of ln of the gradient per token, before and after training",
            columns=("model", "right answers", "at first weights", "after training"),
            rows=tuple(
                (
                    one.model,
                    percents(one.accuracy),
                    with_range(one.fade("before")),
                    with_range(one.fade("after")),
                )
                for one in found
            ),
        ),
    )


def _panel(model: str, fade: Interval, series: Series) -> Panel:
    """`fade`: of ln norm; its title has the factor from one token to the one before."""
    factor = number_text(exp(fade.value)) if abs(fade.value) < 100 else ""
    return Panel(
        x_label="distance in tokens",
        y_label="norm of the gradient",
        unit="plain",
        x_scale="linear",
        title=f"{model}: × {factor} per token" if fade.high < 0 and factor else model,
        series=(series,),
    )
