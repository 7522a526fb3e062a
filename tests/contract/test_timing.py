"""What a timed case promises, as far as one sees it without trusting a speed: blocks are
interleaved, warmed up, and hold the calls alone; the same seed gives the same inputs.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FAKE_BACKENDS
from tests.contract.conftest import last_rows, only_run, run_attnbench

SLEEPS_MS = 3.0
SLEEPER = f"""\
import time
import torch


def attend(q, k, v, *, causal, scale):
    time.sleep({SLEEPS_MS / 1e3})
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
"""
BLOCKS, SEED = 4, 11
PLAN = f"{{processes: 1, min_blocks: {BLOCKS}, max_blocks: {BLOCKS}, budget_s: 0.5}}"
SHAPE = ("--batch", 1, "--seq-len", "32,48", "--d-model", 16, "--heads", 2, "--device", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    rows: dict[str, dict[str, Any]]
    values: list[str]


def measured(place: Path, seed: int, backends: str, setting: str) -> Timed:
    own = place / "backends"
    own.mkdir()
    (own / "sleeper.py").write_text(SLEEPER)
    done = run_attnbench(
        *("run", "--backends", backends, *SHAPE, "--seed", seed, "--set", setting),
        *("--runs", "runs", "--quiet"),
        cwd=place,
        env={
            "ATTNBENCH_BACKENDS": os.pathsep.join([str(own), str(FAKE_BACKENDS)]),
            "RECORDS": str(place / "records"),
        },
    )
    assert done.returncode == 0, done.stderr
    lines = (place / "records").read_text().splitlines()
    return Timed(
        rows=last_rows(only_run(place / "runs")),
        values=[json.loads(line)["values"] for line in lines],
    )


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Timed:
    place = tmp_path_factory.mktemp("timed")
    return measured(place, SEED, "naive,fused,sdpa,sleeper,records", f"plan={PLAN}")


def begun_s(row: dict[str, Any]) -> list[float]:
    return [block["started_unix_s"] for process in row["conditions"] for block in process]


def test_the_blocks_of_a_problem_are_interleaved_in_changing_order(timed: Timed) -> None:
    orders = []
    for seq_len in (32, 48):
        group = {
            row["backend"]: begun_s(row)
            for row in timed.rows.values()
            if row["seq_len"] == seq_len and row["backend"] in ("naive", "fused", "sdpa")
        }
        assert {len(starts) for starts in group.values()} == {BLOCKS}
        for earlier, later in zip(range(BLOCKS - 1), range(1, BLOCKS), strict=True):
            last = max(starts[earlier] for starts in group.values())
            assert last < min(starts[later] for starts in group.values())
        for block in range(BLOCKS):
            orders.append(tuple(sorted(group, key=lambda name: group[name][block])))
    assert len(set(orders)) > 1, "each block draws the order anew"
    sessions = {(row["seq_len"], row["session"]) for row in timed.rows.values()}
    assert len(sessions) >= 2


def test_a_block_holds_the_calls_and_nothing_else(timed: Timed) -> None:
    for row in timed.rows.values():
        calls = [ms for block in row["block_ms"][0] for ms in block]
        shortest = min(calls)
        assert shortest > row["shortest_call_ms"]
        if row["backend"] == "sleeper":
            assert SLEEPS_MS <= shortest < 2 * SLEEPS_MS
        else:
            assert shortest < 1.5, "a tiny product takes a tenth of a millisecond"
        for block, conditions in zip(row["block_ms"][0], row["conditions"][0], strict=True):
            assert len(block) == conditions["calls"]
            assert sum(block) / 1e3 <= conditions["wall_s"]


def test_there_were_enough_calls_before_to_tell_whether_they_were_stationary(timed: Timed) -> None:
    for row in timed.rows.values():
        assert row["warmup_stationary"] in (True, False), row["case"]


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_inputs_follow_from_the_seed_alone(timed: Timed, seed: int, tmp_path: Path) -> None:
    again = measured(tmp_path, seed, "records", "measure=[memory]")
    if seed == SEED:
        assert again.values[0] == timed.values[0], "whatever else is measured, and beside what"
    else:
        assert not set(again.values) & set(timed.values)


def test_places_and_values_are_drawn_anew_for_each_block_that_is_judged(timed: Timed) -> None:
    places_seeds = []
    for row in timed.rows.values():
        assert {one["process"] for one in row["judged"]} == {0}
        assert all(one["error_ratio"] <= row["error_limit_ratio"] for one in row["judged"])
        values_seeds = [one["values_seed"] for one in row["judged"]]
        assert len({SEED, *values_seeds}) == 1 + len(values_seeds)
        places_seeds += [one["places_seed"] for one in row["judged"]]
    assert len(set(places_seeds)) == len(places_seeds)
    assert len(set(timed.values)) > 2 * BLOCKS, "values change from block to block"
