"""Norm of d loss / d x_t over the distance, at first weights and after training, model by model."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, nan

from ....harness.learning.findings import GradientDistance, TrainedGradients
from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Figure, Table, table_of
from ...formatting import list_text, number_text
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import Axes, Points, bounded, figure, percents
from ..trained import TrainedModel, trained_models

TITLE = "Gradients over distance"
SECTION = "asked"
PAGE = "learning"
ORDER = 50
STUDIES = (GradientDistance.STUDY,)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(
        blocks=(*_figures(meta), *failed(meta, GradientDistance.STUDY, TrainedGradients.STUDY)),
        lacking=f"No gradients. A scenario requests them with studies: [{GradientDistance.STUDY}].",
    )


def _figures(meta: Meta) -> Iterator[Block]:
    for _, caption, found in studied(GradientDistance, meta):
        if kept := [one for one in found if one.gradient_norms]:
            yield _at_first_weights(kept, caption)
    for _, caption, trained in studied(TrainedGradients, meta):
        yield _after_training(trained_models(trained), caption)


def _at_first_weights(found: Sequence[GradientDistance], caption: str) -> Figure:
    """The longest sequence of each model; weights scaled to a radius are in the table only."""
    drawn = [one for one in found if one.spectral_radius is None]
    longest = {one.model: one for one in sorted(drawn, key=lambda one: one.seq_len)}
    return _norms(
        "At first weights the gradient",
        f"{caption} · random first weights, nothing trained; geometric means over draws",
        # Exact zeros, where nothing arrives, have no place on a logarithmic axis.
        {
            name: {
                place: Interval(value=norm, low=nan, high=nan, units=1) if norm > 0 else None
                for place, norm in enumerate(one.gradient_norms or ())
            }
            for name, one in longest.items()
        },
        {name: one.fade[::2] if one.fade else (0.0, 0.0) for name, one in longest.items()},
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
    )


def _after_training(found: Sequence[TrainedModel], caption: str) -> Figure:
    sizes = found[0].trainings[0]
    return _norms(
        "After training the gradient by the asked token",
        f"{caption} · {sizes.seq_len} tokens, of which one is marked and asked for;"
        f" trained for {sizes.steps} steps, {len(found[0].trainings)} seeds; bars are 95 %"
        " intervals over seeds",
        {one.model: one.norms() for one in found},
        {one.model: (one.fade("after").value, one.fade("after").high) for one in found},
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
    )


def _norms(
    what: str,
    caption: str,
    norms: Mapping[str, Points],
    fades: Mapping[str, tuple[float, float]],
    table: Table,
) -> Figure:
    """`fades`: the change of ln of the norm per token, and its upper bound."""
    fading = [name for name, (_, high) in fades.items() if high < 0]
    return figure(
        f"{what} fades with the distance in {list_text(fading) or 'no model'}",
        caption,
        {_titled(name, *fades[name]): {name: points} for name, points in norms.items()},
        Axes("distance in tokens", "norm of the gradient", y_scale="log"),
        table,
    )


def _titled(model: str, fade: float, high: float) -> str:
    """`fade`: of ln norm; with the factor from one token to the one before."""
    factor = number_text(exp(fade)) if abs(fade) < 100 else ""
    return f"{model}: × {factor} per token" if high < 0 and factor else model
