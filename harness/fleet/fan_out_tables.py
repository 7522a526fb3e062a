"""`run --dry-run --devices N`: how long the run takes on several devices."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from ..cases.expected_time import Forecast, duration_text
from ..cli.dry_run import DryRun
from ..cli.tables import table
from .fan_out import COUNTS, fan_out, stored_seconds

COLUMNS = ("devices", "wall time", "speed-up", "limited by")


def on_devices(
    dry_run: DryRun, count: int, expected: Forecast, root: Path
) -> Iterator[RenderableType]:
    """The plan's groups, the longest of them, and how long they take on several devices."""
    scenario, device = dry_run.scenario, dry_run.device.type
    found = fan_out(
        dry_run.selected.units,
        {name: one.about_s for name, one in expected.expected.items()},
        stored_seconds(root, scenario.resolved(device), dry_run.device_name()),
        expected.start_s,
        (*COUNTS, count),
        scenario.plan,
        device,
    )
    rows = [
        (
            f"{spread.devices:,}",
            duration_text(spread.wall_s),
            f"{found.spreads[0].wall_s / spread.wall_s:.1f}x",
            "the longest group" if spread.is_floor else "",
        )
        for spread in found.spreads
    ]
    title = f"{scenario.name}: on several devices of this kind, {len(found.unit_s)} groups"
    yield table(title, COLUMNS, rows, right=COLUMNS[:3])
    cases = len(found.longest)
    yield Text(
        f"No number of devices takes less than {duration_text(found.floor_s)}:"
        f" {duration_text(found.start_s)} for starting and"
        f" {duration_text(max(found.unit_s, default=0.0))} for the longest group, which is"
        f" never split:{f' {cases} cases, among them' if cases > 1 else ''} {found.longest[0]}."
    )
    source = "from its work and the plan's limits"
    if found.stored:
        source = f"of {found.stored} of {found.planned} cases from earlier runs, else {source}"
    yield Text(f"Times {source}; joining the shards is not included.")
