"""Preflight: predict a case's cost and refuse it if it cannot run, before anything runs."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from humanize import naturalsize

from ... import impls
from ...impls.discovery.loading import Backend
from ...impls.peak_formulas import nearest
from ..cases.case import MAX_SEQ_LEN, Case, Wall
from ..cases.costs import input_bytes, known_costs
from ..files.errors import first_line
from ..rows.record import Status

HOPELESS = 4
"""Times the budget: a case that needs more is not tried.

Between 1 and 4 times the budget a trial shows the wall for real, and costs little.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """`fields`: of the case's row. `status`, `reason`: why it is refused; else None and ""."""

    fields: dict[str, Any]
    backend: Backend | None = None
    status: Status | None = None
    reason: str = ""


def preflight(case: Case, device: torch.device, budget_bytes: int) -> Preflight:
    """Needs hardly any memory or time; imports the backend's file."""
    p = case.problem
    unknown = {"predicted_reason": f"{case.backend} cannot run here"}
    fields = known_costs(p) | {"predicted_peak_bytes": None} | unknown
    fields["exactness"] = impls.exactness(case.backend)
    fields["input_order"] = impls.input_order(case.backend, p) if p.scope == "core" else None
    if missing := impls.missing(case.backend):
        return Preflight(fields=fields, status=Status.UNAVAILABLE, reason=missing)
    try:
        backend = impls.load(case.backend)
    except ModuleNotFoundError as error:
        name = error.name or ""
        reason = f"needs {name}, which is not installed: pip install {name.partition('.')[0]}"
        return Preflight(fields=fields, status=Status.UNAVAILABLE, reason=reason)
    fields |= {"kernel_requested": backend.pinned_kernel, "exactness": backend.exactness}
    if (lacking := backend.unavailable(device)) is not None:
        return Preflight(fields=fields, status=Status.UNAVAILABLE, reason=lacking)
    if (why_not := backend.why_not(p, device)) is not None:
        return Preflight(fields=fields, status=Status.UNSUPPORTED, reason=why_not)
    fields |= _predicted(case, backend, device)
    peak = fields["predicted_peak_bytes"]
    needed = fields["input_bytes"] + (peak or 0)
    if needed > HOPELESS * budget_bytes:
        what = "inputs and peak" if peak is not None else "the inputs alone"
        size, budget = (naturalsize(number, binary=True) for number in (needed, budget_bytes))
        reason = f"{what} would need {size}, more than {HOPELESS} times the budget of {budget}"
        return Preflight(fields=fields, status=Status.PREDICTED_OOM, reason=reason)
    return Preflight(fields=fields, backend=backend)


def preflight_outside_worker(case: Case, device: torch.device, budget_bytes: int) -> Preflight:
    """Preflight for a table: third-party code is not imported, and a failing import is a status.

    A backend that was not imported has a reason and no status.
    """
    reason = not_imported(case.backend)
    if reason and not impls.missing(case.backend):
        fields = known_costs(case.problem) | {"predicted_peak_bytes": None}
        return Preflight(fields=fields | {"predicted_reason": reason}, reason=reason)
    try:
        return preflight(case, device, budget_bytes)
    except Exception as error:  # noqa: BLE001 - importing may raise anything
        found = Preflight(fields=known_costs(case.problem) | {"predicted_peak_bytes": None})
        return replace(found, status=Status.ERROR, reason=first_line(error))


def not_imported(backend: str) -> str:
    """Why a backend is not imported outside a worker; "" if it may be."""
    origin = impls.third_party(backend)
    return f"from {origin}, which is imported in workers only" if origin else ""


def _predicted(case: Case, backend: Backend, device: torch.device) -> dict[str, Any]:
    """By the backend's formula, if it has one for this problem."""
    p = case.problem
    formula = backend.peak_bytes(p, device, torch.get_num_threads())
    missing = f"{case.backend} has no formula for {p.scope}, {p.passes}, {p.dtype} on {device.type}"
    return {
        "predicted_peak_bytes": formula,
        "predicted_source": None if formula is None else "formula",
        "predicted_reason": missing if formula is None else "",
    }


# ---- of a wall -----------------------------------------------------------------------------------


OF_BACKEND = ("exactness", "input_order")  # fields of a row


def predict(wall: Wall, device: torch.device, budget_bytes: int) -> dict[str, Any]:
    """The fields of the wall's row that need no run; imports the backend's file."""
    unknown = {"predicted_seq_len": None, "predicted_source": None}
    try:
        first = preflight(wall.at(1), device, budget_bytes)
    except Exception as error:  # noqa: BLE001 - importing may raise anything, in the first trial too
        return {**unknown, "predicted_reason": first_line(error)}
    if first.status in (Status.UNAVAILABLE, Status.UNSUPPORTED):
        known = {name: first.fields[name] for name in (*OF_BACKEND, "predicted_reason")}
        return {**unknown, **known}

    def peak_bytes(seq_len: int) -> int | None:
        problem = wall.at(seq_len).problem
        return impls.load(wall.backend).peak_bytes(problem, device, torch.get_num_threads())

    found = _longest(wall, budget_bytes, peak_bytes)
    last = wall.at(max(found or 1, 1))
    fields = preflight(last, device, budget_bytes).fields
    of_backend = {name: fields[name] for name in OF_BACKEND}
    if found is not None:
        source = {"predicted_source": fields["predicted_source"], "predicted_reason": ""}
        return {**of_backend, "predicted_seq_len": found, **source}
    reason = fields["predicted_reason"] or "the formula does not hold at the lengths in question"
    bound = _by_nearest(wall, budget_bytes, device)
    return {**unknown, **of_backend, "predicted_reason": reason, **bound}


def _by_nearest(wall: Wall, budget_bytes: int, device: torch.device) -> dict[str, Any]:
    """A bound in place of a prediction, from the nearest backend and dtype with a formula.

    {} if there is none. The source is then "nearest", and the reason says whose formula it is.
    """
    threads = torch.get_num_threads()
    for place, near in enumerate(nearest(wall.backend, wall.problem, threads)):

        def peak_bytes(seq_len: int, place: int = place) -> int | None:
            there = list(nearest(wall.backend, wall.at(seq_len).problem, threads))[place]
            peak = impls.load(there.backend).peak_bytes(there.problem, device, threads)
            return None if peak is None else peak + there.more_bytes

        known = not impls.missing(near.backend)
        found = _longest(wall, budget_bytes, peak_bytes) if known else None
        if found is not None:
            reason = f"no formula for {wall.backend} in {wall.problem.dtype}; {near.words}"
            source = {"predicted_source": "nearest", "predicted_reason": reason}
            return {"predicted_seq_len": found, **source}
    return {}


def _longest(wall: Wall, budget_bytes: int, peak_bytes: Callable[[int], int | None]) -> int | None:
    """The longest N whose inputs and peak are within the budget; None if the formula does not hold
    there, 0 if N = 1 needs more.

    A formula may hold for long N only, where the scores dominate: an N at which it does not hold is
    taken to fit.
    """

    def exceeds(seq_len: int) -> bool:
        needed = input_bytes(wall.at(seq_len).problem)
        return needed > budget_bytes or needed + (peak_bytes(seq_len) or 0) > budget_bytes

    found = bisect_left(range(1, MAX_SEQ_LEN + 1), x=True, key=exceeds)
    return None if peak_bytes(max(found, 1)) is None else found
