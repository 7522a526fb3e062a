"""`run --dry-run`: every case with what is known of it before anything runs."""

from collections.abc import Iterator

from rich.table import Table

from .case import group_cases
from .environment import pick_device
from .errors import EnvironmentUnmet
from .memory import available_bytes
from .refuse import outlook
from .run import SAFE_SHARE, Choice, chosen
from .scenario import Scenario
from .show import table


def outlook_table(scenario: Scenario, choice: Choice) -> Table:
    """One row per case: input bytes, predicted peak bytes, work, and whether it would be refused."""
    device, why = pick_device(scenario.device)
    if why:
        raise EnvironmentUnmet(f"no {scenario.device} device: {why}; try with --device cpu")
    memory_gib = scenario.limits.memory_gib
    budget = int(memory_gib * 2**30) if memory_gib else int(SAFE_SHARE * available_bytes(device))
    groups = chosen(group_cases(scenario.backends, scenario.problem_groups(device.type)[0]), choice)

    def rows() -> Iterator[tuple[str, ...]]:
        for case in (case for group in groups for case in group.cases):
            view = outlook(case, device, budget)
            peak = view.fields["predicted_peak_bytes"]
            fits = "" if peak is None else ("fits" if peak + view.fields["input_bytes"] <= budget else "beyond the budget")
            ahead = fits if view.status is None else f"{view.status}: {view.reason}"
            yield (
                case.id,
                f"{view.fields['input_bytes']:,}",
                "-" if peak is None else f"{peak:,}",
                f"{view.fields['work_flops']:,}",
                ahead or view.fields["predicted_reason"],
            )

    title = f"{scenario.name}: {sum(len(group.cases) for group in groups)} cases on {device.type}, budget {budget:,} bytes"
    columns = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "outlook")
    return table(title, columns, rows(), right=columns[1:4])
