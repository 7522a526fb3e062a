"""What is known of a case before anything runs: its costs by formula, and whether there is any
point in trying.
"""

from dataclasses import dataclass
from typing import Any

import torch
from humanize import naturalsize

from .. import impls
from ..impls.backend import Backend
from .cases import Case
from .costs import known
from .measure.meta_memory import meta_peak_bytes
from .record import Status
from .worker.attempt import first_line

HOPELESS = 4
"""Times the budget. A case that needs more is not tried: between 1 and 4 times a trial shows the
wall for real, and costs little.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """`status` and `reason` say why the case is refused; None and "" where it may be tried."""

    fields: dict[str, Any]
    backend: Backend | None = None
    status: Status | None = None
    reason: str = ""


def outlook(
    case: Case, device: torch.device, budget_bytes: int, *, check_formula: bool = False
) -> Outlook:
    """Costs no memory and no time to speak of; imports the backend's file.

    Where there is no formula, the meta device predicts the peak, if it can; with `check_formula` it
    is asked in any case.
    """
    p = case.problem
    cannot_run = f"{case.backend} cannot run here"
    fields = known(p) | {
        "predicted_peak_bytes": None,
        "predicted_reason": cannot_run,
        "meta_reason": cannot_run,
    }
    fields["exactness"] = impls.exactness(case.backend)
    missing = impls.missing(case.backend)
    if missing:
        return Outlook(fields=fields, status=Status.UNAVAILABLE, reason=missing)
    try:
        backend = impls.load(case.backend)
    except ModuleNotFoundError as error:
        reason = (
            f"needs {error.name}, which is not installed: pip install"
            f" {(error.name or '').partition('.')[0]}"
        )
        return Outlook(fields=fields, status=Status.UNAVAILABLE, reason=reason)
    fields |= {"kernel_requested": backend.pinned_kernel, "exactness": backend.exactness}
    lacking = backend.unavailable(device)
    if lacking is not None:
        return Outlook(fields=fields, status=Status.UNAVAILABLE, reason=lacking)
    why_not = backend.why_not(p, device)
    if why_not is not None:
        return Outlook(fields=fields, status=Status.UNSUPPORTED, reason=why_not)
    fields |= _predicted(case, backend, device, check_formula=check_formula)
    peak = fields["predicted_peak_bytes"]
    needed = fields["input_bytes"] + (peak or 0)
    if needed > HOPELESS * budget_bytes:
        what = "inputs and peak" if peak is not None else "the inputs alone"
        size, budget = (naturalsize(number, binary=True) for number in (needed, budget_bytes))
        reason = f"{what} would need {size}, more than {HOPELESS} times the budget of {budget}"
        return Outlook(fields=fields, status=Status.PREDICTED_OOM, reason=reason)
    return Outlook(fields=fields, backend=backend)


def foreseen(case: Case, device: torch.device, budget_bytes: int) -> Outlook:
    """`outlook` in a process that is no worker, for a table: the code of others is not run there,
    and a file of the user's may raise.

    A backend that was not asked has a reason and no status.
    """
    reason = not_asked(case.backend)
    fields = known(case.problem) | {"predicted_peak_bytes": None, "predicted_reason": reason}
    if reason and not impls.missing(case.backend):
        return Outlook(fields=fields, reason=reason)
    try:
        return outlook(case, device, budget_bytes)
    except Exception as error:  # noqa: BLE001 - importing may raise anything, and the table has other lines
        return Outlook(fields=fields, status=Status.ERROR, reason=first_line(error))


def not_asked(backend: str) -> str:
    """Why a backend is not imported outside a worker; "" where it may be."""
    origin = impls.third_party(backend)
    return f"from {origin}, which is imported in workers only" if origin else ""


def _predicted(
    case: Case, backend: Backend, device: torch.device, *, check_formula: bool
) -> dict[str, Any]:
    """Two predictions that know nothing of each other, and which of them counts: the formula, where
    there is one.
    """
    p = case.problem
    formula = backend.peak_bytes(p, device, torch.get_num_threads())
    meta, meta_reason = (
        (None, "not asked for")
        if formula is not None and not check_formula
        else meta_peak_bytes(p, backend, device)
    )
    no_formula = (
        f"{case.backend} has no formula for {p.scope}, {p.passes}, {p.dtype} on {device.type}"
    )
    return {
        "predicted_peak_bytes": meta if formula is None else formula,
        "predicted_source": (
            "formula" if formula is not None else "meta" if meta is not None else None
        ),
        "predicted_reason": no_formula if formula is None and meta is None else "",
        "meta_peak_bytes": meta,
        "meta_reason": meta_reason,
    }
