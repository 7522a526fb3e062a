"""A wall's prediction: the longest N whose inputs and predicted peak are within the budget."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...impls.peak_formulas import Near, nearest
from ..cases.case import MAX_SEQ_LEN, Case, Wall
from ..cases.costs import input_bytes
from ..files.errors import first_line
from ..rows.record import Status
from .preflight import preflight

if TYPE_CHECKING:
    import torch

OF_BACKEND = ("exactness", "input_order")  # fields of a row


def predict(wall: Wall, device: "torch.device", budget_bytes: int) -> dict[str, Any]:
    """The fields of the wall's row that need no run; imports the backend's file."""
    unknown = {"predicted_seq_len": None, "predicted_source": None}
    try:
        first = preflight(wall.at(1), device, budget_bytes)
    except Exception as error:  # noqa: BLE001 - importing may raise anything, in the first trial too
        return {**unknown, "predicted_reason": first_line(error)}
    if first.status in (Status.UNAVAILABLE, Status.UNSUPPORTED):
        known = {name: first.fields[name] for name in (*OF_BACKEND, "predicted_reason")}
        return {**unknown, **known}

    found, fields = _longest(wall, device, budget_bytes, wall.at)
    of_backend = {name: fields[name] for name in OF_BACKEND}
    if found is not None:
        source = {"predicted_source": fields["predicted_source"], "predicted_reason": ""}
        return {**of_backend, "predicted_seq_len": found, **source}
    reason = fields["predicted_reason"] or "the formula does not hold at the lengths in question"
    bound = _by_nearest(wall, device, budget_bytes)
    return {**unknown, **of_backend, "predicted_reason": reason, **bound}


def _longest(
    wall: Wall,
    device: "torch.device",
    budget_bytes: int,
    case_at: Callable[[int], Case],
    more_bytes: Callable[[int], int] = lambda _: 0,
) -> tuple[int | None, dict[str, Any]]:
    """The longest N by the peak of a case at each N, and the fields of its preflight there."""

    def needed(seq_len: int) -> int | None:
        peak = preflight(case_at(seq_len), device, budget_bytes).fields["predicted_peak_bytes"]
        inputs = input_bytes(wall.at(seq_len).problem)
        return None if peak is None else inputs + peak + more_bytes(seq_len)

    found = longest_within(budget_bytes, lambda n: input_bytes(wall.at(n).problem), needed)
    return found, preflight(case_at(max(found or 1, 1)), device, budget_bytes).fields


def _by_nearest(wall: Wall, device: "torch.device", budget_bytes: int) -> dict[str, Any]:
    """A bound in place of a prediction, from the nearest backend and dtype with a formula.

    {} if there is none. The source is then "nearest", and the reason says whose formula it is.
    """

    def near_at(seq_len: int, place: int) -> Near:
        return list(nearest(wall.backend, wall.at(seq_len).problem))[place]

    def case_at(seq_len: int, place: int) -> Case:
        near = near_at(seq_len, place)
        return replace(wall.at(seq_len), backend=near.backend, problem=near.problem)

    def more_at(seq_len: int, place: int) -> int:
        return near_at(seq_len, place).more_bytes

    for place, near in enumerate(nearest(wall.backend, wall.problem)):
        at, more = partial(case_at, place=place), partial(more_at, place=place)
        found, _ = _longest(wall, device, budget_bytes, at, more)
        if found is not None:
            reason = f"no formula for {wall.backend} in {wall.problem.dtype}; {near.words}"
            source = {"predicted_source": "nearest", "predicted_reason": reason}
            return {"predicted_seq_len": found, **source}
    return {}


def longest_within(
    budget_bytes: int, inputs: Callable[[int], int], needed: Callable[[int], int | None]
) -> int | None:
    """The longest N that needs no more than the budget; None if no formula holds there.

    0 if N = 1 needs more. A formula may hold for long N only, where the scores dominate: an N at
    which it does not hold is taken to fit.
    """
    last = longest(lambda n: inputs(n) <= budget_bytes)

    def fits(n: int) -> bool:
        return n <= last and ((bytes_ := needed(n)) is None or bytes_ <= budget_bytes)

    found = longest(fits)
    return None if needed(max(found, 1)) is None else found


def longest(fits: Callable[[int], bool]) -> int:
    """The largest n up to MAX_SEQ_LEN that fits, 0 if none does; beyond it nothing may fit."""
    low, high = 0, MAX_SEQ_LEN + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
