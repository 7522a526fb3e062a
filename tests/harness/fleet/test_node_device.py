"""The process beside a device: whose settings count, and which devices it refuses."""

import os
import subprocess
import sys

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.fleet import node_device
from attnbench.harness.fleet.node_device import NodeDevice, settings_here
from attnbench.harness.fleet.remote import NodeWanted
from tests.conftest import environment
from tests.fakes.nvml.driver import H100, UUID

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
