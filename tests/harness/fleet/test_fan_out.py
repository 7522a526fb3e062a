"""How long a run takes on several devices: by its units, and by what earlier runs took."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnbench.harness.fleet.fan_out import FanOut, fan_out, stored_seconds
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.scenario.shards import Units
from tests.fakes.shard_runs import scenario, write_shard


def whole(**changes: Any) -> Units:
    return select(scenario(**changes), "cpu", Selection()).whole


def of(seconds: dict[str, float], stored: Mapping[str, float] = {}, **changes: Any) -> FanOut:
    plan = scenario(**changes).plan
    return fan_out(whole(**changes), seconds, stored, 3.0, (64, 1, 2), plan, "cpu")


def each(seconds: float) -> dict[str, float]:
    return {case.id: seconds for group in whole().groups for case in group.cases}


def test_one_device_takes_the_sum_and_many_the_longest_group() -> None:
    found = of(each(10.0))  # five groups of four cases
    assert [one.devices for one in found.spreads] == [1, 2, 64]
    assert [one.wall_s for one in found.spreads] == [203.0, 123.0, 43.0]
    assert [one.is_floor for one in found.spreads] == [False, False, True]
    assert found.floor_s == 43.0


def test_the_longest_group_is_the_floor_whatever_the_others_take() -> None:
    long = whole().groups[2].cases
    found = of(each(1.0) | {case.id: 100.0 for case in long})
    assert found.longest == [case.id for case in long]
    assert found.floor_s == 403.0
    assert [one.wall_s >= found.floor_s for one in found.spreads] == [True] * 3


def test_what_an_earlier_run_took_counts_instead_of_the_prediction() -> None:
    case = whole().groups[0].cases[0].id
    found = of(each(10.0), {case: 70.0, "of another plan": 1e6})
    assert found.spreads[0].wall_s == 263.0
    assert (found.stored, found.planned) == (1, 20)


def stored(root: Path, spent_s: float, **changes: Any) -> Path:
    """A run whose cases all took so long."""
    run = write_shard(root, None, **changes)
    rows = [json.dumps({**row, "spent_s": spent_s}) for row in read_rows(run)]
    (run / "rows.jsonl").write_text("\n".join(rows) + "\n")
    return run


def test_times_are_those_of_the_newest_run_of_this_plan_and_device(tmp_path: Path) -> None:
    resolved = scenario().resolved("cpu")
    old = stored(tmp_path, 1.0)
    new = stored(tmp_path, 2.0)
    old.rename(tmp_path / f"20200101T000000Z-{old.name.split('-', 1)[1]}")
    new.rename(tmp_path / f"20210101T000000Z-{new.name.split('-', 1)[1]}")
    stored(tmp_path, 9.0, of=scenario(plan="standard"))
    stored(tmp_path, 9.0, environment={"cpu": "another"})
    found = stored_seconds(tmp_path, resolved, "AMD EPYC")
    assert set(found.values()) == {2.0}
    assert len(found) == 20
