"""Norm of d loss / d x_t over the distance, for attention, a recurrent layer and convolutions."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, isfinite
from typing import Any

import pandas as pd

from ..analysis.trained_gradients import trained_models
from ..data.run_meta import Meta, finite_number, run_caption
from ..elements import Block, Figure, Panel, Series, Table, note
from ..formatting import number_text, range_text
from ._trained_gradients import after_training

TITLE = "Gradients over distance"
ORDER = 50
NEEDS = ()
STUDY = "gradient_distance"
Finding = Mapping[str, Any]


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    drawn = False
    for name, run in meta.items():
        found = [one for one in run.get("studies", []) if _is_known(one)]
        if found:
            drawn = True
            yield _figure(found, run_caption(run, name if len(meta) > 1 else ""))
        if trained := trained_models(run):
            drawn = True
            yield after_training(trained, run_caption(run, name if len(meta) > 1 else ""))
    if not drawn:
        yield note(f"No gradients. A scenario requests them with studies: [{STUDY}].")


def _figure(found: Sequence[Finding], caption: str) -> Figure:
    """The longest sequence of each model."""
    longest: dict[str, Finding] = {}
    for one in found:
        best = longest.get(one["model"])
        if best is None or one["seq_len"] > best["seq_len"]:
            longest[one["model"]] = one
    fading = [name for name, one in longest.items() if (_bound(one, "high") or 0.0) < 0]
    title = (
        f"The gradient fades with the distance through {' and '.join(fading)}"
        if fading
        else "No model's gradient fades with the distance"
    )
    panels = [
        Panel(
            x_label="distance in tokens",
            y_label="norm of the gradient",
            unit="plain",
            x_scale="linear",
            title=f"{name}: × {number_text(_per_token(one))} per token" if name in fading else name,
            series=(
                Series(
                    backend=name,
                    kind="measured",
                    x=tuple(float(place) for place in range(len(one["gradient_norms"]))),
                    # Exact zeros, where nothing arrives, have no place on a logarithmic axis.
                    y=tuple(value if value > 0 else None for value in one["gradient_norms"]),
                ),
            ),
        )
        for name, one in longest.items()
    ]
    return Figure(
        title=title,
        caption=f"{caption} · random first weights, nothing trained; geometric means over draws",
        description=(
            "The norm of the gradient of the last output by each token, over how many tokens it"
            " lies before, on a logarithmic axis: one panel per model. The table has the fade per"
            " token with its interval, and how many operations lie between."
        ),
        panels=tuple(panels),
        table=Table(
            title="Gradients and paths over the sequence length",
            columns=(
                *("model, N", "ln of the gradient, change per token"),
                *("shortest path, operations", "longest path", "reach, tokens"),
            ),
            rows=tuple(_row(one) for one in found),
        ),
    )


def _row(one: Finding) -> tuple[str, ...]:
    counts = ("shortest_path_steps", "longest_path_steps", "reach_tokens")
    fade = finite_number(one, "fade_per_token")
    return (
        f"{one['model']}, {one['seq_len']}",
        number_text(fade) + range_text(_bound(one, "low"), _bound(one, "high")),
        *(
            f"{value:.0f}" if (value := finite_number(one, name)) is not None else ""
            for name in counts
        ),
    )


def _bound(one: Finding, end: str) -> float | None:
    return finite_number(one, f"fade_per_token_{end}")


def _per_token(one: Finding) -> float | None:
    """The factor of the gradient from one token to the one before."""
    fade = finite_number(one, "fade_per_token")
    return exp(fade) if fade is not None and abs(fade) < 100 else None


def _is_known(one: Any) -> bool:
    norms = one.get("gradient_norms") if isinstance(one, dict) else None
    return (
        isinstance(norms, list)
        and bool(norms)
        and one.get("study") == STUDY
        and isinstance(one.get("model"), str)
        and type(one.get("seq_len")) is int
        and all(type(value) in (int, float) and isfinite(value) and value >= 0 for value in norms)
    )
