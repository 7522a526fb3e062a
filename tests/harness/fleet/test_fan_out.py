"""How long a run takes on several devices, by its units."""

from attnbench.harness.fleet.fan_out import FanOut, fan_out
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.scenario.shards import Units
from tests.fakes.shard_runs import scenario


def whole() -> Units:
    return select(scenario(), "cpu", Selection()).whole


def of(seconds: dict[str, float]) -> FanOut:
    return fan_out(whole(), seconds, 3.0, (64, 1, 2), scenario().plan, "cpu")


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
