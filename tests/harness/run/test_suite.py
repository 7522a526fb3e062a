"""Several scenarios go on where they were stopped; what has finished is not measured twice."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.devices.this_device import ThisDevice
from attnbench.harness.run import suite
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import RunOptions
from attnbench.harness.run.suite import SuiteEntry, earlier_run
from attnbench.harness.scenario.selection import Selection
from attnbench.harness.scenario.shards import read_shard
from tests.fakes.shard_runs import scenario, write_shard

OPTIONS = RunOptions(command=["test"], listener=Listener())


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"cpu": "AMD EPYC", "torch": "2.12.0"}
    device = ThisDevice("cpu", "AMD EPYC", facts, None, "")
    monkeypatch.setattr(suite, "this_device", lambda requested: device)
    monkeypatch.setattr(suite, "__version__", "0.2.0")


def written(root: Path, shard: str | None = None, **changes: Any) -> Path:
    return write_shard(root, shard, **changes)


def entry(shard: str | None = None, **changes: Any) -> SuiteEntry:
    selection = Selection(shard=read_shard(shard) if shard else None)
    return SuiteEntry(scenario=scenario(**changes), selection=selection)


@pytest.mark.parametrize(
    ("changes", "seed"),
    [
        ({"environment": {"torch": "2.13.0"}}, 0),
        ({"environment": {"cpu": "Intel"}}, 0),
        ({"of": scenario(plan="standard")}, 0),
        ({"of": scenario(backends=["fused", "sdpa"])}, 0),
        ({"shard": "1/2"}, 0),
        ({}, 1),
    ],
)
def test_a_run_of_something_else_is_not(tmp_path: Path, changes: Any, seed: int) -> None:
    written(tmp_path, **changes)
    assert earlier_run(entry(), tmp_path, seed) is None


def test_nor_is_one_of_other_cases(tmp_path: Path) -> None:
    written(tmp_path)
    narrow = SuiteEntry(scenario=scenario(), selection=Selection(only=("n1024",)))
    assert earlier_run(narrow, tmp_path, 0) is None
