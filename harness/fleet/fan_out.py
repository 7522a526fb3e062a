"""`run --dry-run --devices N`: how long a run takes on several devices, its units spread as
--shard spreads them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from ..cases.expected_time import Forecast, duration_text
from ..cli.dry_run import DryRun
from ..cli.tables import table
from ..files.printable import spaced
from ..scenario import Plan
from ..scenario.shards import Units, split, units_of

COLUMNS = ("devices", "wall time", "speed-up", "limited by")
COUNTS = (1, 8, 64, 512)


class Spread(NamedTuple):
    """So many devices, how long the last of them takes, and whether one unit alone takes that."""

    devices: int
    wall_s: float
    is_floor: bool


class FanOut(NamedTuple):
    """Seconds of each unit, and of starting on each device; `longest`: the ids of the longest."""

    unit_s: Sequence[float]
    longest: Sequence[str]
    start_s: float
    spreads: Sequence[Spread]

    @property
    def floor_s(self) -> float:
        """No number of devices is faster."""
        return self.start_s + max(self.unit_s, default=0.0)


def on_devices(dry_run: DryRun, count: int, expected: Forecast) -> Iterator[RenderableType]:
    """The plan's groups, the longest of them, and how long they take on several devices."""
    scenario, device = dry_run.scenario, dry_run.device.type
    found = fan_out(
        dry_run.selected.units,
        {name: one.about_s for name, one in expected.expected.items()},
        expected.start_s,
        (*COUNTS, count),
        scenario.plan,
        device,
    )
    rows = [
        (
            spaced(spread.devices),
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
    yield Text("Times from the plan's limits and the work; joining the shards is not included.")


def fan_out(
    whole: Units,
    expected_s: Mapping[str, float],
    start_s: float,
    counts: Iterable[int],
    plan: Plan,
    device: str,
) -> FanOut:
    """`expected_s`: by id."""
    units = units_of(whole)
    unit_s = [sum(expected_s.get(one, 0.0) for one in unit.ids) for unit in units]
    longest_s = max(unit_s, default=0.0)
    spreads = []
    for count in sorted(set(counts)):
        shards = split(whole, count, plan, device)
        last_s = max(sum(expected_s.get(one, 0.0) for one in shard.ids) for shard in shards)
        spreads.append(Spread(count, start_s + last_s, count > 1 and last_s <= longest_s))
    return FanOut(
        unit_s=unit_s,
        longest=units[unit_s.index(longest_s)].ids if units else (),
        start_s=start_s,
        spreads=spreads,
    )
