"""Norm of d loss / d x_t over the distance at first weights, model by model."""

from collections.abc import Iterator, Sequence
from math import exp, nan

from ....harness.heads.findings import GradientDistance
from ....harness.stats.intervals import Interval
from ...data.row_groups import Row
from ...data.run_meta import Meta
from ...elements import Block, Figure, table_of
from ...formatting import list_text
from ...quantity import Quantity
from ...subjects import Subject
from ...subjects._studies import failed, studied
from ..figures import Axes, figure

TITLE = "Gradients over distance"
SECTION = "asked"
APART = True
ORDER = 50
STUDIES = (GradientDistance.STUDY,)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(
        blocks=(*_figures(meta), *failed(meta, GradientDistance.STUDY)),
        lacking=f"No gradients. A scenario requests them with studies: [{GradientDistance.STUDY}].",
    )


def _figures(meta: Meta) -> Iterator[Block]:
    for _, caption, found in studied(GradientDistance, meta):
        longest = {one.model: one for one in sorted(found, key=lambda one: one.seq_len)}
        if kept := [one for one in longest.values() if one.gradient_norms]:
            yield _norms(kept, caption)


def _norms(found: Sequence[GradientDistance], caption: str) -> Figure:
    fading = [one.model for one in found if one.fade and one.fade[2] < 0]
    return figure(
        "At first weights the gradient fades with the distance in"
        f" {list_text(fading) or 'no model'}",
        f"{caption} · random first weights, nothing trained; geometric means over draws",
        # Exact zeros, where nothing arrives, have no place on a logarithmic axis.
        {
            one.model: {
                one.model: {
                    place: Interval(value=norm, low=nan, high=nan, units=1) if norm > 0 else None
                    for place, norm in enumerate(one.gradient_norms or ())
                }
            }
            for one in found
        },
        Axes("distance in tokens", "norm of the gradient", y_scale="log"),
        table_of(
            "Gradients over distance",
            found,
            {
                "model, N": lambda one: f"{one.model}, {one.seq_len}",
                "ln of the gradient, change per token": lambda one: Quantity(
                    one.fade_per_token, "plain", one.fade_per_token_low, one.fade_per_token_high
                ),
                "factor per token": lambda one: Quantity(one.fade and exp(one.fade[0])),
            },
        ),
    )
