"""The process beside a device: whose settings count, and which devices it refuses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.fleet import node_device
from attnbench.harness.fleet.node_device import NodeDevice, settings_here
from attnbench.harness.fleet.remote import NodeWanted
from attnbench.harness.fleet.shipping import content_of
from attnbench.harness.heads.checkpoints import decoder_file
from attnbench.harness.heads.checkpoints.given import Checkpoint
from attnbench.harness.run.studies import Told
from tests.conftest import environment
from tests.fakes.nvml.driver import H100, UUID
from tests.harness.heads.test_checkpoint_files import decoder

REFUSE = """
import sys
from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.fleet.node_device import refuse_shared
try:
    refuse_shared(sys.argv[1])
except EnvironmentUnmet as refusal:
    print(refusal)
"""


def test_the_settings_are_those_where_the_run_was_started(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    here = settings_here()
    assert here["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as Ray sets it for a task with one CPU
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    node_device._set(here)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MALLOC_ARENA_MAX" not in os.environ
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2", "Ray says which GPU"
    node_device._set({})
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(
    ("more", "uuid", "refusal"),
    [
        ("process self 500\n", UUID, ""),
        ("process self 500\nprocess 1 900\n", UUID, f"{UUID}: used by process 1 ("),
        ("mig 1\n", UUID, f"{UUID}: MIG splits this GPU"),
        ("", "MIG-33333333-b", "MIG-33333333-b: MIG splits this GPU"),
    ],
)
def test_a_gpu_that_others_use_or_that_is_split_is_refused(fake_nvml, more, uuid, refusal) -> None:
    fake_nvml.write(H100.replace("mig 0\n", "") + more)
    done = subprocess.run(
        [sys.executable, "-c", REFUSE, uuid],
        env=environment(fake_nvml.environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().startswith(refusal)
    assert bool(done.stdout.strip()) == bool(refusal)


def wanted(*needs: tuple[str, str]) -> NodeWanted:
    return NodeWanted(device="cpu", settings=settings_here(), needs=needs)


def test_a_package_that_is_missing_there_is_one_line_before_anything_starts() -> None:
    device = NodeDevice(lambda said: None)
    with pytest.raises(EnvironmentUnmet) as refused:
        device.open(wanted(("json", "hf"), ("no_such_package", "checkpoint")))
    assert str(refused.value) == (
        "needs no_such_package, which is not installed there: pip install 'attnbench[checkpoint]'"
    )


def told(one: Checkpoint) -> tuple[str, Told]:
    return one.study, one.sent().request


@pytest.mark.long
def test_a_node_opens_what_it_was_sent_and_says_what_is_wrong_without_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its two models, one of them cut off."""
    monkeypatch.setenv(node_device.SHARED_CORES, "1")
    pytest.importorskip("safetensors")
    name = "a_name_that_is_long_enough_to_be_shortened"
    for path in (good := tmp_path / "good.safetensors", bad := tmp_path / f"{name}.safetensors"):
        decoder_file.save(decoder(), path, {})
    bad.write_bytes(bad.read_bytes()[:-8])
    device = NodeDevice(lambda said: None)
    device.open(wanted())
    try:
        folder = device._given.path
        models = [Checkpoint(name=path.stem, path=path) for path in (good, bad)]
        for one in models:
            files = one.sent().files.items()
            assert {device.keep(name, content_of(path)) for name, path in files} == {""}
        found = device.try_attachments({one.name: told(one) for one in models}, 1 << 30)
        assert found.remarks == []
        (problem,) = found.problems
        assert problem.startswith("'a_name_that_is_long")
        assert "wanted a whole safetensors file" in problem
        (problem,) = device.try_attachments({"good": told(models[0])}, 1000).problems
        assert problem.startswith("'good/good.safetensors': its weights take")
    finally:
        device.close()
    assert not folder.exists()
