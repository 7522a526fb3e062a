"""`run --dry-run`: every case and every wall with what is known of it before anything runs."""

from collections.abc import Iterator
from typing import Any

import torch
from rich.table import Table

from ..cases import Wall
from ..environment import pick_device
from ..errors import EnvironmentUnmet
from ..measure.memory_budget import available_bytes
from ..preflight import foreseen, not_asked
from ..run.start import SAFE_SHARE
from ..scenario import Scenario
from ..selection import Choice, Selection, select
from ..terminal import table
from ..worker.wall_prediction import predict
from .wall_table import foreseen_table


def outlook_tables(scenario: Scenario, choice: Choice) -> Iterator[Table]:
    """The cases: input bytes, predicted peak bytes, work, and whether they would be refused. The
    walls: where they should be.
    """
    device, why = pick_device(scenario.device)
    if why:
        raise EnvironmentUnmet(f"no {scenario.device} device: {why}; try with --device cpu")
    memory_gib = scenario.limits.memory_gib
    budget = int(memory_gib * 2**30) if memory_gib else int(SAFE_SHARE * available_bytes(device))
    some = select(scenario, device.type, choice)
    if some.groups:
        environments = (
            f" in {len(choice.interpreters)} environments, as this interpreter foresees them"
            if choice.interpreters
            else ""
        )
        title = (
            f"{scenario.name}: {len(some.cases)} cases on {device.type}{environments}, budget"
            f" {budget:,} bytes"
        )
        yield case_table(title, some, device, budget)
    if some.walls:
        title = (
            f"{scenario.name}: {len(some.walls)} walls on {device.type}, budget {budget:,} bytes"
        )
        yield foreseen_table(
            title, [(wall.id, predicted(wall, device, budget)) for wall in some.walls]
        )


def predicted(wall: Wall, device: torch.device, budget: int) -> dict[str, Any]:
    reason = not_asked(wall.backend)
    return (
        {"predicted_seq_len": None, "predicted_reason": reason}
        if reason
        else predict(wall, device, budget)
    )


def case_table(title: str, some: Selection, device: torch.device, budget: int) -> Table:
    def rows() -> Iterator[tuple[str, ...]]:
        for case in some.cases:
            view = foreseen(case, device, budget)
            peak = view.fields["predicted_peak_bytes"]
            fits = (
                ""
                if peak is None
                else (
                    "fits" if peak + view.fields["input_bytes"] <= budget else "beyond the budget"
                )
            )
            ahead = fits if view.status is None else f"{view.status}: {view.reason}"
            yield (
                case.id,
                f"{view.fields['input_bytes']:,}",
                "-" if peak is None else f"{peak:,}",
                f"{view.fields['work_flops']:,}",
                ahead or view.fields["predicted_reason"],
            )

    columns = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "outlook")
    return table(title, columns, rows(), right=columns[1:4])
