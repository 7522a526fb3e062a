"""What is known of a case before anything runs: its costs by formula, and whether there is any point in trying."""

from dataclasses import dataclass
from typing import Any

import torch
from humanize import naturalsize

from .. import impls
from ..impls.backend import Backend
from .case import Case
from .costs import known
from .record import Status

HOPELESS = 4
"""Times the budget. A case that needs more is not tried: between 1 and 4 times a trial shows the wall for real, and costs little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """`status` and `reason` say why the case is refused; None and "" where it may be tried."""

    fields: dict[str, Any]
    backend: Backend | None = None
    status: Status | None = None
    reason: str = ""


def outlook(case: Case, device: torch.device, budget_bytes: int) -> Outlook:
    """Costs no memory and no time to speak of; imports the backend's file."""
    p = case.problem
    fields = known(p) | {"predicted_peak_bytes": None, "predicted_reason": f"{case.backend} cannot run here"}
    missing = impls.missing(case.backend)
    if missing:
        return Outlook(fields=fields, status=Status.UNAVAILABLE, reason=missing)
    backend = impls.load(case.backend)
    fields["kernel_requested"] = backend.variant or None
    why_not = backend.why_not(p, device)
    if why_not is not None:
        return Outlook(fields=fields, status=Status.UNSUPPORTED, reason=why_not)
    peak = backend.peak_bytes(p, device, torch.get_num_threads())
    fields["predicted_peak_bytes"] = peak
    fields["predicted_reason"] = (
        "" if peak is not None else f"{case.backend} has no formula for {p.scope}, {p.passes}, {p.dtype} on {device.type}"
    )
    needed = fields["input_bytes"] + (peak or 0)
    if needed > HOPELESS * budget_bytes:
        what = "inputs and peak" if peak is not None else "the inputs alone"
        size, budget = (naturalsize(number, binary=True) for number in (needed, budget_bytes))
        reason = f"{what} would need {size}, more than {HOPELESS} times the budget of {budget}"
        return Outlook(fields=fields, status=Status.PREDICTED_OOM, reason=reason)
    return Outlook(fields=fields, backend=backend)
