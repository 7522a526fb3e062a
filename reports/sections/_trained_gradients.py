"""Gradients over distance after training, beside those at first weights."""

from collections.abc import Sequence
from math import exp

from ..analysis.trained_gradients import TrainedModel
from ..elements import Figure, Panel, Series, Table
from ..formatting import list_text, number_text
from ._interval_texts import known, percents, with_range


def after_training(found: Sequence[TrainedModel], caption: str) -> Figure:
    fading = [one for one in found if one.fade("after").high < 0]
    names = list_text([one.model for one in fading])
    sizes = found[0].trainings[0]
    return Figure(
        title=(
            f"After training the gradient by the asked token fades with the distance in {names}"
            if fading
            else "After training no model's gradient by the asked token fades with the distance"
        ),
        caption=(
            f"{caption} · {sizes.get('seq_len')} tokens, of which one is marked and asked for;"
            f" trained for {sizes.get('steps')} steps, {len(found[0].trainings)} seeds"
        ),
        description=(
            "The norm of the gradient of the right answer by the marked token, over how many tokens"
            " it lies before the question, on a logarithmic axis: one panel per model, geometric"
            " means with intervals over seeds. The table has the change per token before and after"
            " training, and how many answers are right."
        ),
        panels=tuple(_panel(one) for one in found),
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


def _panel(one: TrainedModel) -> Panel:
    norms, fade = one.norms(), one.fade("after")
    factor = number_text(exp(fade.value)) if abs(fade.value) < 100 else ""
    return Panel(
        x_label="distance in tokens",
        y_label="norm of the gradient",
        unit="plain",
        x_scale="linear",
        title=f"{one.model}: × {factor} per token" if fade.high < 0 and factor else one.model,
        series=(
            Series(
                backend=one.model,
                kind="measured",
                x=tuple(float(place) for place in range(1, len(norms) + 1)),
                y=tuple(None if norm is None else known(norm.value) for norm in norms),
                low=tuple(None if norm is None else known(norm.low) for norm in norms),
                high=tuple(None if norm is None else known(norm.high) for norm in norms),
            ),
        ),
    )
