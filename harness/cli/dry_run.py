"""`run --dry-run`: every case and wall with its prediction, before anything runs."""

from collections.abc import Iterator
from typing import Any

import torch
from rich.table import Table

from ..cases import Case, Wall
from ..environment import pick_device
from ..errors import EnvironmentUnmet
from ..measure.memory_budget import available_bytes
from ..preflight import not_imported, preflight_outside_worker
from ..run.start import SAFE_SHARE
from ..scenario import Scenario
from ..selection import Selection, select
from ..terminal import table
from ..worker.wall import predict
from .wall_table import predicted_table

COLUMNS = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "preflight")


def preflight_tables(scenario: Scenario, selection: Selection) -> Iterator[Table]:
    """Cases with input bytes, predicted peak, work and refusals; walls with their prediction."""
    device, why = pick_device(scenario.device)
    if why:
        raise EnvironmentUnmet(f"no {scenario.device} device: {why}; try with --device cpu")
    memory_gib = scenario.limits.memory_gib
    budget = int(memory_gib * 2**30) if memory_gib else int(SAFE_SHARE * available_bytes(device))
    selected = select(scenario, device.type, selection)
    environments = len(selection.interpreters)
    where = (
        f" in {environments} environments, predicted by this interpreter" if environments else ""
    )
    if selected.groups:
        cases = selected.cases
        title = (
            f"{scenario.name}: {len(cases)} cases on {device.type}{where}, budget {budget:,} bytes"
        )
        rows = (_case_row(case, device, budget) for case in cases)
        yield table(title, COLUMNS, rows, right=COLUMNS[1:4])
    if selected.walls:
        walls = selected.walls
        count = f"{len(walls)} {'wall' if len(walls) == 1 else 'walls'}"
        title = f"{scenario.name}: {count} on {device.type}, budget {budget:,} bytes"
        yield predicted_table(title, [(one.id, _predicted(one, device, budget)) for one in walls])


def _predicted(wall: Wall, device: torch.device, budget: int) -> dict[str, Any]:
    reason = not_imported(wall.backend)
    if reason:
        return {"predicted_seq_len": None, "predicted_reason": reason}
    return predict(wall, device, budget)


def _case_row(case: Case, device: torch.device, budget: int) -> tuple[str, ...]:
    view = preflight_outside_worker(case, device, budget)
    peak, inputs = view.fields["predicted_peak_bytes"], view.fields["input_bytes"]
    if view.status is not None:
        result = f"{view.status}: {view.reason}"
    elif peak is None:
        result = view.fields["predicted_reason"]
    else:
        result = "fits" if peak + inputs <= budget else "beyond the budget"
    peak_text = "-" if peak is None else f"{peak:,}"
    return case.id, f"{inputs:,}", peak_text, f"{view.fields['work_flops']:,}", result
