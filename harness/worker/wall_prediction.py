"""Where a backend's wall should be, before anything runs: the longest N whose inputs and predicted
peak are within the budget.
"""

from collections.abc import Callable
from typing import Any

import torch

from ..cases import LONGEST, Wall
from ..costs import input_bytes
from ..preflight import outlook
from ..record import Status
from .attempt import first_line


def predict(wall: Wall, device: torch.device, budget_bytes: int) -> dict[str, Any]:
    """The fields of the wall's row that need no run; imports the backend's file."""
    try:
        first = outlook(wall.at(1), device, budget_bytes)
    except Exception as error:  # noqa: BLE001 - importing may raise anything; the first probe will too, and becomes the row's status
        return {
            "predicted_seq_len": None,
            "predicted_source": None,
            "predicted_reason": first_line(error),
        }
    if first.status in (Status.UNAVAILABLE, Status.UNSUPPORTED):
        unknown = {
            "predicted_seq_len": None,
            "predicted_source": None,
            "predicted_reason": first.fields["predicted_reason"],
        }
        return {"exactness": first.fields["exactness"], **unknown}

    def needed(seq_len: int) -> int | None:
        fields = outlook(wall.at(seq_len), device, budget_bytes).fields
        peak = fields.get("predicted_peak_bytes")
        return None if peak is None else fields["input_bytes"] + peak

    found = longest_within(budget_bytes, lambda n: input_bytes(wall.at(n).problem), needed)
    fields = outlook(wall.at(max(found or 1, 1)), device, budget_bytes).fields
    reason = (
        fields["predicted_reason"]
        or "the formula does not hold at the lengths that come into question"
    )
    return {
        "exactness": fields["exactness"],
        "predicted_seq_len": found,
        "predicted_source": None if found is None else fields["predicted_source"],
        "predicted_reason": "" if found is not None else reason,
    }


def longest_within(
    budget_bytes: int, inputs: Callable[[int], int], needed: Callable[[int], int | None]
) -> int | None:
    """The longest N that needs no more than the budget, 0 where N = 1 needs more; None where no
    formula holds there.

    A formula may hold for long N only, where the scores dominate: N at which it does not hold are
    taken to fit.
    """
    last = longest(lambda n: inputs(n) <= budget_bytes)
    found = longest(
        lambda n: n <= last and ((bytes_ := needed(n)) is None or bytes_ <= budget_bytes)
    )
    return None if needed(max(found, 1)) is None else found


def longest(fits: Callable[[int], bool]) -> int:
    """The largest n up to LONGEST that fits, 0 where none does, for a property that once lost is
    not regained.
    """
    low, high = 0, LONGEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
