"""Norm of d loss / d x_t over the distance, at first weights and after training, model by model."""

from collections.abc import Iterator, Sequence
from math import exp

from ....harness.learning.findings import GradientDistance, TrainedGradients
from ....harness.rows.findings import findings_of
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Figure, Series, table_of
from ...formatting import list_text, number_text
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed
from ..figures import Axes, bounded, by_run, figure, line, percents
from ..trained import TrainedModel, trained_models

TITLE = "Gradients over distance"
ORDER = 50
NEEDS = ()
NORMS = Axes("distance in tokens", "norm of the gradient", y_scale="log")
LOG = "a panel per model, on a logarithmic axis, geometric means"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(
        blocks=(*_figures(meta), *failed(meta, GradientDistance.STUDY, TrainedGradients.STUDY)),
        lacking=f"No gradients. A scenario requests them with studies: [{GradientDistance.STUDY}].",
    )


def _figures(meta: Meta) -> Iterator[Block]:
    def kept(studies: object) -> list[GradientDistance]:
        return [one for one in findings_of(GradientDistance, studies) if one.gradient_norms]

    for caption, found in by_run(meta, kept).items():
        yield _at_first_weights(found, caption)
    for caption, trained in by_run(meta, trained_models).items():
        yield _after_training(trained, caption)


def _at_first_weights(found: Sequence[GradientDistance], caption: str) -> Figure:
    """The longest sequence of each model."""
    longest = {one.model: one for one in sorted(found, key=lambda one: one.seq_len)}
    fades = {name: one.fade or (0.0, 0.0, 0.0) for name, one in longest.items()}
    fading = [name for name, (_, _, high) in fades.items() if high < 0]
    return figure(
        f"The gradient fades with the distance through {' and '.join(fading)}"
        if fading
        else "No model's gradient fades with the distance",
        f"{caption} · random first weights, nothing trained; geometric means over draws",
        {
            _titled(name, fades[name][0], fades[name][2]): [_norms(name, one)]
            for name, one in longest.items()
        },
        NORMS,
        table_of(
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
        about=LOG,
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
    return figure(
        f"After training the gradient by the asked token fades with the distance in"
        f" {list_text(fading)}"
        if fading
        else "After training no model's gradient by the asked token fades with the distance",
        f"{caption} · {sizes.seq_len} tokens, of which one is marked and asked for;"
        f" trained for {sizes.steps} steps, {len(found[0].trainings)} seeds",
        {
            _titled(one.model, fade.value, fade.high): [line(one.model, one.norms())]
            for one, fade in zip(found, fades.values(), strict=True)
        },
        NORMS,
        table_of(
            "Change of ln of the gradient per token, before and after training",
            found,
            {
                "model": lambda one: one.model,
                "right answers": lambda one: percents(one.accuracy),
                "at first weights": lambda one: bounded(one.fade("before")),
                "after training": lambda one: bounded(one.fade("after")),
            },
        ),
        about=f"{LOG}, with intervals over seeds",
    )


def _titled(model: str, fade: float, high: float) -> str:
    """`fade`: of ln norm; with the factor from one token to the one before."""
    factor = number_text(exp(fade)) if abs(fade) < 100 else ""
    return f"{model}: × {factor} per token" if high < 0 and factor else model
