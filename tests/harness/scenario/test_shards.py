"""Shards are disjoint and complete, the same everywhere, and never split what is compared."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbench.harness.files.errors import BadInput
from attnbench.harness.scenario import Plan
from attnbench.harness.scenario.selection import Selection, select
from attnbench.harness.scenario.shards import (
    Shard,
    Units,
    assign,
    part_of,
    read_shard,
    units_of,
)
from tests.conftest import environment, ran
from tests.fakes.shard_runs import scenario

WALLS = {"find_wall": True, "grid": {"seq_len": [64, 128], "d_model": 64, "heads": [1, 2, 4]}}
QUICK = Plan(like="quick")


def whole(**changes: Any) -> Units:
    return select(scenario(**changes), "cpu", Selection())


def split(of: Units, count: int) -> list[Units]:
    return [part_of(of, Shard(number, count), QUICK, "cpu") for number in range(1, count + 1)]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_group_and_the_walls_of_one_problem_are_never_split(count: int) -> None:
    of = whole(**WALLS)
    shards = split(of, count)
    for unit in units_of(of):
        assert sum(bool(set(unit.ids) & set(shard.ids)) for shard in shards) == 1
    walls_of = [{wall.backend for wall in shard.walls} for shard in shards if shard.walls]
    assert all(backends == {"fused", "naive"} for backends in walls_of)


def test_shards_keep_the_order_and_the_numbers_of_the_plan() -> None:
    of = whole()
    for shard in split(of, 3):
        numbers = [group.number for group in shard.groups]
        assert numbers == sorted(numbers)
        assert all(group == of.groups[group.number] for group in shard.groups)


@pytest.mark.long
def test_every_process_computes_the_same_shards() -> None:
    program = (
        "from tests.harness.scenario.test_shards import *\n"
        "print([shard.ids for shard in split(whole(**WALLS), 3)])"
    )
    printed = {
        ran(
            [sys.executable, "-c", program],
            env=environment({"PYTHONHASHSEED": seed, "PYTHONPATH": ".package:."}),
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{[one.ids for one in split(whole(**WALLS), 3)]}\n"}


@settings(max_examples=200, deadline=None)
@given(weights=st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60), count=st.integers(1, 20))
def test_no_shard_has_much_more_than_its_share(weights: list[float], count: int) -> None:
    loads = [0.0] * count
    for place, weight in zip(assign(weights, count), weights, strict=True):
        loads[place] += weight
    # Graham's bound for a list in any order, and the load that no assignment undercuts
    assert max(loads) <= sum(weights) / count + (1 - 1 / count) * max(weights) + 1e-6
    assert max(loads) >= max(weights)


@pytest.mark.parametrize(
    "text", ["", "3", "0/3", "4/3", "1/0", "a/b", "1/3/5", "-1/3", "1/9999999"]
)
def test_a_shard_that_cannot_be_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"--shard: found .*; wanted NUMBER/COUNT") as refused:
        read_shard(text)
    assert "\n" not in str(refused.value)
