"""What a forecast of the run needs from this machine: its pace, and which cases will not run."""

from collections.abc import Iterable
from time import monotonic
from typing import Any

import torch

from ... import impls
from ..cases.case import Case, Wall
from ..files.errors import first_line
from ..machine.pace import pace
from ..scenario.preflight import predict, preflight

MOST_S = 0.5  # for asking backends: what was not asked by then is taken to run


def foresee(
    planned: Iterable[Case | Wall],
    dtypes: Iterable[str],
    device: torch.device,
    budget_bytes: int,
) -> dict[str, Any]:
    """JSON-ready: pace; for cases and walls by id what is foreseen of them, and the longest N.

    Only files of attnbench itself are imported; nothing of them runs but their formulas.
    """
    asked: dict[str, dict[str, Any]] = {}
    lengths: dict[str, int] = {}
    found = {"pace": pace(device, dtypes), "cases": asked, "walls": lengths, "reason": ""}
    end = monotonic() + MOST_S
    try:
        for one in planned:
            if monotonic() > end or not impls.is_ours(one.backend):
                continue
            if isinstance(one, Case):
                view = preflight(one, device, budget_bytes, meta="never")
                asked[one.id] = view.foreseen._asdict()
            elif longest := predict(one, device, budget_bytes, "never")["predicted_seq_len"]:
                lengths[one.id] = longest
    except Exception as error:  # noqa: BLE001 - a forecast is no reason to measure nothing
        found["reason"] = first_line(error)
    return found
