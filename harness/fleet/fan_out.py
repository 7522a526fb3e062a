"""`run --dry-run --devices N`: how long a run takes on several devices, its units spread as
--shard spreads them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from ..cases.expected_time import Forecast, duration_text
from ..cli.dry_run import DryRun
from ..cli.tables import table
from ..files.errors import BadInput
from ..rows.record import Status
from ..rows.run_files import META, ROWS, read_meta, read_rows
from ..scenario import Plan
from ..scenario.shards import Units, split, units_of
from ..store.run_store import runs_and_suites

COLUMNS = ("devices", "wall time", "speed-up", "limited by")
COUNTS = (1, 8, 64, 512)
MOST_RUNS = 20  # that are looked at for times
MOST_BYTES = 256 << 20  # of the rows of one


class Spread(NamedTuple):
    """So many devices, how long the last of them takes, and whether one unit alone takes that."""

    devices: int
    wall_s: float
    is_floor: bool


class FanOut(NamedTuple):
    """Seconds of each unit, and of starting on each device; `stored` of `planned` cases, walls and
    studies have a time from an earlier run.
    """

    unit_s: Sequence[float]
    longest: Sequence[str]
    start_s: float
    stored: int
    planned: int
    spreads: Sequence[Spread]

    @property
    def floor_s(self) -> float:
        """No number of devices is faster."""
        return self.start_s + max(self.unit_s, default=0.0)


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


def fan_out(
    whole: Units,
    expected_s: Mapping[str, float],
    stored_s: Mapping[str, float],
    start_s: float,
    counts: Iterable[int],
    plan: Plan,
    device: str,
) -> FanOut:
    """`expected_s`, `stored_s`: by id; the second counts where both are known."""
    seconds = {**expected_s, **{one: stored_s[one] for one in stored_s.keys() & expected_s.keys()}}
    units = units_of(whole)
    unit_s = [sum(seconds.get(one, 0.0) for one in unit.ids) for unit in units]
    longest_s = max(unit_s, default=0.0)
    spreads = []
    for count in sorted(set(counts)):
        shards = split(whole, count, plan, device)
        last_s = max(sum(seconds.get(one, 0.0) for one in shard.ids) for shard in shards)
        spreads.append(Spread(count, start_s + last_s, count > 1 and last_s <= longest_s))
    return FanOut(
        unit_s=unit_s,
        longest=units[unit_s.index(longest_s)].ids if units else (),
        start_s=start_s,
        stored=len(stored_s.keys() & expected_s.keys()),
        planned=len(whole.ids),
        spreads=spreads,
    )


def stored_seconds(root: Path, scenario: Mapping[str, Any], name: str | None) -> dict[str, float]:
    """How long each case took in the newest run of this scenario, plan and device that has it.

    `scenario`: as resolved. `name`: of the GPU or the processor.
    """
    found: dict[str, float] = {}
    folders = [
        run
        for path in reversed(runs_and_suites(root))
        for run in ((path,) if (path / META).is_file() else reversed(runs_and_suites(path)))
    ]
    for run in folders[:MOST_RUNS]:
        with suppress(BadInput, OSError):  # a broken run has no times
            if not _alike(read_meta(run), scenario, name):
                continue
            if (run / ROWS).stat().st_size > MOST_BYTES:
                continue
            spent = {row["case"]: _spent_s(row) for row in read_rows(run)}
            found |= {one: s for one, s in spent.items() if s is not None and one not in found}
    return found


def _alike(meta: Mapping[str, Any], scenario: Mapping[str, Any], name: str | None) -> bool:
    then, environment = meta["scenario"], meta["environment"]
    same = all(then.get(part) == scenario[part] for part in ("name", "plan", "measure", "watch"))
    return same and name in (environment.get("device_name") or environment.get("cpu"),)


def _spent_s(row: Mapping[str, Any]) -> float | None:
    value = row.get("spent_s")
    is_time = type(value) in (int, float) and row.get("status") != Status.INTERRUPTED
    return float(value) if is_time and value is not None else None
