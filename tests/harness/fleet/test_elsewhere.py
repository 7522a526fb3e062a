"""A run on a fake cluster, started and resumed as any other: which files go there."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnbench.harness.fleet.elsewhere import Elsewhere
from attnbench.harness.fleet.remote import NodeWanted
from attnbench.harness.heads.checkpoints.given import Checkpoint
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.start import start_run
from attnbench.harness.scenario.selection import Selection
from tests.fakes.fleet import FakeFleet
from tests.fakes.shard_runs import scenario


class FakeCluster:
    """One device, which measures nothing. `wanted`, `files`: how it was asked for last."""

    fleet: FakeFleet
    wanted: NodeWanted
    files: Sequence[Path]

    @contextmanager
    def open(self, wanted: NodeWanted, files: Sequence[Path], *_: object) -> Iterator[FakeFleet]:
        self.wanted, self.files, self.fleet = wanted, files, FakeFleet(1)
        yield self.fleet

    @property
    def options(self) -> RunOptions:
        return RunOptions(command=["attnbench"], listener=Listener(), engine=Elsewhere(self.open))


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def test_models_go_there_by_contents_and_no_path_of_this_machine_does(
    tmp_path: Path, cluster: FakeCluster, models: list[Checkpoint]
) -> None:
    selection = Selection(attachments=tuple(models))
    result = start_run(scenario(), tmp_path, 0, selection, cluster.options)
    studies = [row["status"] for row in read_rows(result.path) if row["kind"] == "study"]
    assert studies == ["ok", "ok"]
    assert cluster.wanted.needs == [("transformers", "hf")]
    read = ("config.json", "model.safetensors")
    assert cluster.fleet.sent == [
        (0, f"{name}/{one}") for name in ("mine", "other") for one in read
    ]
    assert cluster.fleet.attached == {
        name: {"path": name, "tokens": None} for name in ("mine", "other")
    }
    assert cluster.files == []
    assert str(models[0].path) not in (result.path / "run.json").read_text()
