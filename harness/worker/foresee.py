"""What a forecast of the run needs from this machine: its pace, and which cases will not run."""

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

import torch

from ... import impls
from ..cases.case import Case, Wall
from ..cases.costs import input_bytes
from ..files.errors import first_line
from ..machine.pace import pace
from ..scenario.preflight import HOPELESS
from ..scenario.wall_prediction import longest_within

MOST_S = 0.5  # for asking backends: what was not asked by then is taken to run


def foresee(
    cases: Sequence[Case],
    walls: Sequence[Wall],
    dtypes: Iterable[str],
    device: torch.device,
    budget_bytes: int,
) -> dict[str, Any]:
    """JSON-ready: pace; for cases and walls by id what forecast.Foreseen has, and the longest N.

    Only files of attnbench itself are imported; nothing of them runs but their formulas.
    """
    asked: dict[str, dict[str, Any]] = {}
    lengths: dict[str, int] = {}
    found = {"pace": pace(device, dtypes), "cases": asked, "walls": lengths, "reason": ""}
    end = monotonic() + MOST_S
    try:
        for case in cases:
            if monotonic() < end and impls.is_ours(case.backend):
                asked[case.id] = foresee_case(case, device, budget_bytes)
        for wall in walls:
            if monotonic() < end and impls.is_ours(wall.backend):
                longest = _longest(wall, device, budget_bytes)
                if longest:
                    lengths[wall.id] = longest
    except Exception as error:  # noqa: BLE001 - a forecast is no reason to measure nothing
        found["reason"] = first_line(error)
    return found


def foresee_case(case: Case, device: torch.device, budget_bytes: int) -> dict[str, Any]:
    """Whether the case will be refused, its peak bytes by formula, and whether it compiles."""
    if impls.missing(case.backend):
        return {"refused": True}
    backend = impls.load(case.backend)
    if backend.why_not(case.problem, device) is not None:
        return {"refused": True}
    peak = backend.peak_bytes(case.problem, device, torch.get_num_threads())
    hopeless = input_bytes(case.problem) + (peak or 0) > HOPELESS * budget_bytes
    return {"refused": hopeless, "peak_bytes": peak, "compiles": backend.compiles}


def _longest(wall: Wall, device: torch.device, budget_bytes: int) -> int | None:
    """The longest N by the backend's formula."""
    if impls.missing(wall.backend):
        return None
    backend, threads = impls.load(wall.backend), torch.get_num_threads()

    def inputs(seq_len: int) -> int:
        return input_bytes(wall.at(seq_len).problem)

    def needed(seq_len: int) -> int | None:
        peak = backend.peak_bytes(wall.at(seq_len).problem, device, threads)
        return None if peak is None else inputs(seq_len) + peak

    return longest_within(budget_bytes, inputs, needed)
