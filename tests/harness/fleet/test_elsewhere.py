"""A run on a fake cluster, started and resumed as any other: which files go there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.fleet.elsewhere import Elsewhere
from attnbench.harness.fleet.remote import NodeWanted
from attnbench.harness.learning.checkpoints.given import Checkpoint
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.start import resume_run, start_run
from attnbench.harness.scenario.selection import Selection
from attnbench.harness.terminal.progress import QuietProgress
from tests.fakes.fleet import FakeFleet
from tests.fakes.shard_runs import scenario


class FakeCluster:
    """One device, which measures nothing. `wanted`: how it was asked for last."""

    fleet: FakeFleet
    wanted: NodeWanted

    @contextmanager
    def open(self, wanted: NodeWanted, check: Callable[[], None]) -> Iterator[FakeFleet]:
        self.wanted, self.fleet = wanted, FakeFleet(1)
        yield self.fleet

    @property
    def options(self) -> RunOptions:
        return RunOptions(command=["attnbench"], listener=QuietProgress(), engine=Elsewhere(self))


@pytest.fixture
def cluster() -> FakeCluster:
    pytest.importorskip("safetensors")
    return FakeCluster()


@pytest.fixture
def models(tmp_path: Path) -> tuple[Checkpoint, ...]:
    paths = [tmp_path / f"{name}.safetensors" for name in ("mine", "other")]
    for path in paths:
        path.write_bytes(b"weights")
    return tuple(Checkpoint(name=path.stem, path=path) for path in paths)


def studies_of(run: Path) -> list[dict[str, Any]]:
    return [row for row in read_rows(run) if row["kind"] == "study"]


def test_models_go_there_by_contents_and_no_path_of_this_machine_does(
    tmp_path: Path, cluster: FakeCluster, models: tuple[Checkpoint, ...]
) -> None:
    selection = Selection(attachments=models)
    result = start_run(scenario(), tmp_path, 0, selection, cluster.options)
    assert [row["status"] for row in studies_of(result.path)] == ["ok", "ok"]
    assert cluster.wanted.needs == [("safetensors", "checkpoint")]
    assert cluster.fleet.sent == [(0, "mine/mine.safetensors"), (0, "other/other.safetensors")]
    assert cluster.fleet.config.attached == {
        "mine": {"path": "mine/mine.safetensors", "tokens": None},
        "other": {"path": "other/other.safetensors", "tokens": None},
    }
    assert cluster.fleet.config.save_to is None
    assert str(models[0].path) not in (result.path / "run.json").read_text()


def test_models_that_are_left_are_named_again_and_only_they_are_sent(
    tmp_path: Path, cluster: FakeCluster, models: tuple[Checkpoint, ...]
) -> None:
    selection = Selection(attachments=models)
    run = start_run(scenario(), tmp_path, 0, selection, cluster.options).path
    lines = (run / "rows.jsonl").read_text().splitlines(keepends=True)
    (run / "rows.jsonl").write_text("".join(line for line in lines if "heads-other" not in line))
    with pytest.raises(BadInput, match="--checkpoint other=PATH"):
        resume_run(run, cluster.options)
    resume_run(run, cluster.options, attachments=models[1:])
    assert cluster.fleet.sent == [(0, "other/other.safetensors")]
    assert len(studies_of(run)) == 2


def test_a_run_that_saves_models_says_so_to_its_devices_also_when_it_is_resumed(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    saving = scenario(studies=["trained_heads:majority"], save_models=True)
    run = start_run(saving, tmp_path, 0, Selection(), cluster.options).path
    assert cluster.fleet.config.save_to is not None
    assert cluster.wanted.needs == [("safetensors", "checkpoint")]
    (run / "rows.jsonl").write_text("")
    resume_run(run, replace(cluster.options))
    assert cluster.fleet.config.save_to is not None
    assert cluster.wanted.needs == [("safetensors", "checkpoint")]


class Remarks(QuietProgress):
    """Keeps what is said before the first case."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(
        self, path: Path, planned: Mapping[str, int], done: int, remarks: Sequence[str]
    ) -> None:
        self.said += remarks


def test_own_backends_are_said_to_stay_here_before_a_case_is_measured(tmp_path: Path) -> None:
    cluster, first, again = FakeCluster(), Remarks(), Remarks()
    mine = scenario(backends=["fused", "attend@my_module"])
    options = replace(cluster.options, listener=first, allow_import=True)
    run = start_run(mine, tmp_path, 0, Selection(), options).path
    assert [one.partition(":")[0] for one in first.said] == ["attend@my_module"]
    assert "every node needs it" in first.said[0]
    (run / "rows.jsonl").write_text("")
    resume_run(run, replace(options, listener=again))
    assert again.said == first.said


def test_of_attnbench_s_own_backends_nothing_is_said(tmp_path: Path) -> None:
    cluster, listener = FakeCluster(), Remarks()
    start_run(scenario(), tmp_path, 0, Selection(), replace(cluster.options, listener=listener))
    assert listener.said == []


def test_a_model_that_cannot_be_read_here_is_refused_before_a_cluster_is_asked(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    gone = Checkpoint(name="gone", path=tmp_path / "gone.safetensors")
    with pytest.raises(BadInput, match="cannot be read"):
        start_run(scenario(), tmp_path, 0, Selection(attachments=(gone,)), cluster.options)
    assert not hasattr(cluster, "wanted")
