"""`run --dry-run`: every case and wall with its prediction."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..cases.case import Case, Wall
from ..devices.environment import available_bytes, pick_device
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet
from ..files.printable import spaced
from ..rows.record import Planned
from ..run.planning import budget_bytes_of
from ..scenario import Scenario
from ..scenario.preflight import Preflight, not_imported, predict, preflight_outside_worker
from ..scenario.selection import SelectedCases, Selection, select
from ..terminal.live_bar import busy
from .tables import table

COLUMNS = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "preflight")
WALL_COLUMNS = ("wall", "predicted N", "why there is none, or whose formula it is")
LEAVE_OUT = ("work_flops", "input_bytes")


def preflight_tables(scenario: Scenario, selection: Selection) -> Iterator[RenderableType]:
    """Cases and walls as tables. Raises EnvironmentUnmet if there is no such device."""
    with busy("predicting"):
        dry = DryRun(scenario, selection)
        tables = [*dry.tables()]
    yield from tables
    if (shard := selection.shard) is not None:
        yield Text(
            f"Shard {shard}: {len(dry.planned())} of {dry.whole_count} cases, walls and studies."
        )


def bytes_said(count: int) -> str:
    """`15.1 GiB (16,211,355,238 bytes)`: cases are held against the exact number."""
    return f"{count / 2**30:.3g} GiB ({spaced(count)} bytes)"


class DryRun:
    """What is known of a scenario's run before it begins."""

    def __init__(self, scenario: Scenario, selection: Selection) -> None:
        """Raises EnvironmentUnmet if there is no such device."""
        self.scenario = scenario
        self.device, why = pick_device(scenario.device)
        if why:
            raise EnvironmentUnmet(f"{no_device(scenario.device, why)}; try with --device cpu")
        self.budget = budget_bytes_of(scenario, available_bytes(self.device))
        self.selected: SelectedCases = select(scenario, self.device.type, selection)
        self.views = {one.id: self._view(one) for one in self.selected.cases}
        self.walls = {wall.id: self._wall(wall) for wall in self.selected.units.walls}

    def tables(self) -> Iterator[RenderableType]:
        """Cases with bytes, predicted peak, work and refusals; walls with their prediction."""
        name, budget, device = self.scenario.name, bytes_said(self.budget), self.device.type
        if self.views:
            title = f"{name}: {len(self.views)} cases on {device}, budget {budget}"
            rows = (self._row(case, view) for case, view in self.views.items())
            yield table(title, COLUMNS, rows, right=COLUMNS[1:4], may_go=LEAVE_OUT, ids=True)
        if self.walls:
            count = f"{len(self.walls)} {'wall' if len(self.walls) == 1 else 'walls'}"
            title = f"{name}: {count} on {device}, budget {budget}"
            found = [
                (wall, _longest(known), known["predicted_reason"])
                for wall, known in self.walls.items()
            ]
            yield table(title, WALL_COLUMNS, found, right=WALL_COLUMNS[1:2], ids=True)

    @property
    def whole_count(self) -> int:
        """Cases, walls and studies of the plan, of which a shard has a part."""
        return len(self.selected.whole.ids)

    def planned(self) -> Sequence[Planned]:
        return self.selected.units.planned

    def _view(self, case: Case) -> Preflight:
        return preflight_outside_worker(case, self.device, self.budget)

    def _wall(self, wall: Wall) -> dict[str, Any]:
        reason = not_imported(wall.backend)
        if reason:
            return {"predicted_seq_len": None, "predicted_reason": reason}
        return predict(wall, self.device, self.budget)

    def _row(self, case: str, view: Preflight) -> tuple[str, ...]:
        peak, inputs = view.fields["predicted_peak_bytes"], view.fields["input_bytes"]
        if view.status is not None:
            result = f"{view.status}: {view.reason}"
        elif peak is None:
            result = view.fields["predicted_reason"]
        else:
            result = "fits" if peak + inputs <= self.budget else "beyond the budget"
        peak_text = "-" if peak is None else spaced(peak)
        return case, spaced(inputs), peak_text, spaced(view.fields["work_flops"]), result


def _longest(known: Mapping[str, Any]) -> str:
    """Beside the formula of another dtype or backend, at least that."""
    n, bound = known["predicted_seq_len"], known.get("predicted_source") == "nearest"
    return "-" if n is None else f"{'>= ' if bound else ''}{spaced(n)}"
