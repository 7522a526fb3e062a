"""The plan of a shard in run.json: its own part, and the rest as `elsewhere`."""

from typing import Any

import pytest

from attnbench.harness.run.spec import planned_fields
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.scenario.shards import Shard
from tests.fakes.shard_runs import scenario

WALLS = {"find_wall": True, "studies": ["score_scale"], "backends": ["fused", "naive", "sdpa"]}
PLANS = ("cases", "walls", "studies")


def fields(shard: Shard | None, **changes: Any) -> dict[str, Any]:
    return planned_fields(select(scenario(**changes), "cpu", Selection(shard=shard)), shard)


def ids(plan: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [one["case"] for one in plan[name]] for name in PLANS}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_own_and_elsewhere_are_the_whole_plan(number: int) -> None:
    plan = fields(Shard(number=number, of=3), **WALLS)
    own, elsewhere, whole = ids(plan), ids(plan["shard"]["elsewhere"]), ids(fields(None, **WALLS))
    for name in PLANS:
        assert not set(own[name]) & set(elsewhere[name])
        assert sorted(own[name] + elsewhere[name]) == sorted(whole[name])
    assert (plan["shard"]["number"], plan["shard"]["of"]) == (number, 3)


def test_a_place_is_that_in_the_whole_plan() -> None:
    plan = fields(Shard(number=1, of=3), **WALLS)
    whole = ids(fields(None, **WALLS))
    for name in ("walls", "studies"):
        for one in (*plan[name], *plan["shard"]["elsewhere"][name]):
            assert whole[name][one["place"]] == one["case"]
