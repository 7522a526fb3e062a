"""A wall's prediction: the longest N whose inputs and predicted peak are within the budget."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...impls.peak_formulas import nearest
from ..cases.case import MAX_SEQ_LEN, Case, Wall
from ..cases.costs import input_bytes
from ..files.errors import first_line
from ..rows.record import Status
from .preflight import UseMeta, preflight

if TYPE_CHECKING:
    import torch

OF_BACKEND = ("exactness", "input_order")  # fields of a row

At = Callable[[int], tuple[Case, int]]
"""The case whose peak is asked for at an N, and the bytes by which the wall's own needs more."""
Known = Callable[[Case], Mapping[str, Any]]
"""The fields of a case's row by its preflight."""


def predict(
    wall: Wall, device: "torch.device", budget_bytes: int, meta: UseMeta = "without a formula"
) -> dict[str, Any]:
    """The fields of the wall's row that need no run; imports the backend's file."""
    unknown = {"predicted_seq_len": None, "predicted_source": None}
    try:
        first = preflight(wall.at(1), device, budget_bytes, meta=meta)
    except Exception as error:  # noqa: BLE001 - importing may raise anything, in the first trial too
        return {**unknown, "predicted_reason": first_line(error)}
    if first.status in (Status.UNAVAILABLE, Status.UNSUPPORTED):
        known = {name: first.fields[name] for name in (*OF_BACKEND, "predicted_reason")}
        return {**unknown, **known}

    def known_of(case: Case) -> Mapping[str, Any]:
        return preflight(case, device, budget_bytes, meta=meta).fields

    found = _longest(wall, budget_bytes, lambda n: (wall.at(n), 0), known_of)
    fields = known_of(wall.at(max(found or 1, 1)))
    of_backend = {name: fields[name] for name in OF_BACKEND}
    if found is not None:
        source = {"predicted_source": fields["predicted_source"], "predicted_reason": ""}
        return {**of_backend, "predicted_seq_len": found, **source}
    reason = fields["predicted_reason"] or "the formula does not hold at the lengths in question"
    bound = _by_nearest(wall, budget_bytes, known_of)
    return {**unknown, **of_backend, "predicted_reason": reason, **bound}


def _longest(wall: Wall, budget_bytes: int, at: At, known_of: Known) -> int | None:
    def inputs(seq_len: int) -> int:
        return input_bytes(wall.at(seq_len).problem)

    def needed(seq_len: int) -> int | None:
        case, more_bytes = at(seq_len)
        peak: int | None = known_of(case)["predicted_peak_bytes"]
        return None if peak is None else inputs(seq_len) + peak + more_bytes

    return longest_within(budget_bytes, inputs, needed)


def _by_nearest(wall: Wall, budget_bytes: int, known_of: Known) -> dict[str, Any]:
    """A bound in place of a prediction, from the nearest backend and dtype with a formula.

    {} if there is none. The source is then "nearest", and the reason says whose formula it is.
    """

    def near_at(place: int, seq_len: int) -> tuple[Case, int]:
        own = wall.at(seq_len)
        near = list(nearest(wall.backend, own.problem))[place]
        return replace(own, backend=near.backend, problem=near.problem), near.more_bytes

    for place, near in enumerate(nearest(wall.backend, wall.problem)):
        found = _longest(wall, budget_bytes, partial(near_at, place), known_of)
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
