"""`run --dry-run`: every case and wall with its prediction."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ..cases.case import Wall
from ..devices.environment import available_bytes, pick_device
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet, option
from ..files.printable import spaced
from ..run.start import budget_bytes_of
from ..run.suite import SuiteEntry
from ..scenario.preflight import Preflight, not_imported, predict, preflight_outside_worker
from ..scenario.selection import select
from ..terminal.live_bar import busy
from .tables import table

COLUMNS = ("case", "input_bytes", "predicted_peak_bytes", "work_flops", "preflight")
WALL_COLUMNS = ("wall", "predicted N", "why there is none, or whose formula it is")
LEAVE_OUT = ("work_flops", "input_bytes")


def preflight_tables(entry: SuiteEntry) -> Iterator[RenderableType]:
    """Cases with bytes, predicted peak, work and refusals; walls with their prediction. Raises
    EnvironmentUnmet if there is no such device.
    """
    scenario, shard = entry.scenario, entry.selection.shard
    with busy("predicting"):
        device, why = pick_device(scenario.device)
        if why:
            raise EnvironmentUnmet(
                f"{no_device(scenario.device, why)}; try with {option('device', 'cpu')}"
            )
        budget = budget_bytes_of(scenario, available_bytes(device))
        selected = select(scenario, device.type, entry.selection)
        cases = [
            (one.id, *_case(preflight_outside_worker(one, device, budget), budget))
            for one in selected.cases
        ]
        walls = [(one.id, *_wall(one, device, budget)) for one in selected.walls]
    where = f"on {device.type}, budget {bytes_said(budget)}"
    if cases:
        title = f"{scenario.name}: {len(cases)} cases {where}"
        yield table(title, COLUMNS, cases, right=COLUMNS[1:4], may_go=LEAVE_OUT, ids=True)
    if walls:
        title = f"{scenario.name}: {len(walls)} {'wall' if len(walls) == 1 else 'walls'} {where}"
        yield table(title, WALL_COLUMNS, walls, right=WALL_COLUMNS[1:2], ids=True)
    if shard is not None:
        part, whole = len(selected.planned), len((selected.whole or selected).planned)
        yield Text(f"Shard {shard}: {part} of {whole} cases, walls and studies.")


def bytes_said(count: int) -> str:
    """`15.1 GiB (16,211,355,238 bytes)`: cases are held against the exact number."""
    return f"{count / 2**30:.3g} GiB ({spaced(count)} bytes)"


def _case(view: Preflight, budget: int) -> tuple[str, ...]:
    peak, inputs = view.fields["predicted_peak_bytes"], view.fields["input_bytes"]
    if view.status is not None:
        result = f"{view.status}: {view.reason}"
    elif peak is None:
        result = view.fields["predicted_reason"]
    else:
        result = "fits" if peak + inputs <= budget else "beyond the budget"
    peak_text = "-" if peak is None else spaced(peak)
    return spaced(inputs), peak_text, spaced(view.fields["work_flops"]), result


def _wall(wall: Wall, device: Any, budget: int) -> tuple[str, str]:
    """The longest N, beside the formula of another dtype or backend at least that; and why."""
    if reason := not_imported(wall.backend):
        return "-", reason
    known: Mapping[str, Any] = predict(wall, device, budget)
    n, bound = known["predicted_seq_len"], known.get("predicted_source") == "nearest"
    return "-" if n is None else f"{'>= ' if bound else ''}{spaced(n)}", known["predicted_reason"]
