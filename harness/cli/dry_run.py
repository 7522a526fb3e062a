"""`run --dry-run`: every case and wall with its prediction, and how long they will take."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..cases.case import Case, Wall
from ..cases.expected_time import Forecast
from ..files.errors import EnvironmentUnmet
from ..files.printable import spaced
from ..machine.environment import fix_threads, pick_device
from ..machine.free_memory import available_bytes
from ..machine.pace import pace
from ..machine.this_device import no_device
from ..rows.record import Planned
from ..run.forecast import dtypes_of, forecast
from ..run.packs import packs
from ..run.planning import budget_bytes_of
from ..run.worker_pool import RunConfig
from ..scenario import Scenario
from ..scenario.estimate import Pace
from ..scenario.preflight import Preflight, not_imported, predict, preflight_outside_worker
from ..scenario.selection import SelectedCases, Selection, select
from ..terminal.live_bar import busy
from .tables import table

COLUMNS = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "preflight")
WALL_COLUMNS = ("wall", "predicted N", "why there is none, or whose formula it is")
LEAVE_OUT = ("work_flops", "input_bytes")


def preflight_tables(
    scenario: Scenario, selection: Selection, of_packs: Mapping[str, Any]
) -> Iterator[RenderableType]:
    """Cases and walls as tables, then how long they take, which exceed the time limit, and what
    packs foresee by their options.

    Raises EnvironmentUnmet if there is no such device.
    """
    with busy("predicting"):
        dry = DryRun(scenario, selection)
        tables, forecast = [*dry.tables()], dry.forecast()
        more = [
            part
            for pack in packs()
            if pack.foreseen is not None
            for part in pack.foreseen(dry, forecast, **pack.own(of_packs))
        ]
    yield from tables
    if (shard := selection.shard) is not None:
        yield Text(
            f"Shard {shard}: {len(dry.planned())} of {dry.whole_count} cases, walls and studies."
        )
    yield Text(f"A run takes {forecast.sentence}.")
    for remark in forecast.remarks:
        yield Text(f"note: {remark}", style="yellow")
    yield from more


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
        self.environments = len(selection.interpreters)
        self.views = {one.id: self._view(one) for one in self.selected.cases}
        self.walls = {wall.id: self._wall(wall) for wall in self.selected.units.walls}

    def tables(self) -> Iterator[RenderableType]:
        """Cases with bytes, predicted peak, work and refusals; walls with their prediction."""
        name, budget, device = self.scenario.name, bytes_said(self.budget), self.device.type
        if self.views:
            many = self.environments
            where = f" in {many} environments, predicted by this interpreter" if many else ""
            title = f"{name}: {len(self.views)} cases on {device}{where}, budget {budget}"
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

    def forecast(self) -> Forecast:
        """How long the run will take; measures how fast this machine is now."""
        fix_threads()
        scenario, planned = self.scenario, self.planned()
        budget_s, walls = scenario.limits.wall_budget_s, self.selected.units.walls
        if budget_s is not None and walls:
            budget_s *= len(walls) / len(self.selected.whole.walls)
        config = RunConfig(
            device=self.device.type,
            plan=scenario.plan,
            measure=scenario.measured(self.device.type),
            timeout_s=scenario.limits.timeout_s,
            budget_bytes=self.budget,
            seed=0,
            watch=scenario.watched(),
            wall_budget_s=budget_s,
        )
        found = pace(self.device, dtypes_of(planned))
        lengths = {name: known["predicted_seq_len"] for name, known in self.walls.items()}
        return forecast(
            planned,
            config,
            Pace(**found),
            {name: view.foreseen for name, view in self.views.items()},
            {name: length for name, length in lengths.items() if length},
        )

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
