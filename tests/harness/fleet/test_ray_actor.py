"""The process beside a device: whose settings count, and which devices it refuses."""

import os
import subprocess
import sys
from typing import Any

import pytest

from attnbench import __version__
from attnbench.harness.fleet.ray_actor import DeviceActor, DeviceWanted, settings_here, use_settings
from attnbench.harness.process.device_lock import device_lock
from tests.conftest import environment
from tests.fakes.nvml.driver import H100, UUID

REFUSE = """
import sys
from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench import __version__
from attnbench.harness.fleet.ray_actor import refuse_shared
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
    use_settings(here)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MALLOC_ARENA_MAX" not in os.environ
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2", "Ray says which GPU"
    use_settings({})
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


def wanted(**changes: Any) -> DeviceWanted:
    usual: dict[str, Any] = {"device": "cpu", "kind": "", "version": __version__, "folders": ()}
    usual |= {"settings": settings_here(), "allow_import": False, "wait": False}
    return DeviceWanted(**{**usual, **changes})


@pytest.mark.long
def test_a_device_of_another_kind_or_version_or_that_another_run_holds_is_not_opened() -> None:
    assert str(DeviceActor().open(wanted(kind="No such"))).endswith("the run measures on No such")
    assert "; wanted 0.1, as here" in str(DeviceActor().open(wanted(version="0.1")))
    with device_lock("cpu", wait=False, check=lambda: None):
        assert "is measuring on this cpu" in str(DeviceActor().open(wanted()))
