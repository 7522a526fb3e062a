"""What a day with a GPU records of it can be replayed by the fakes."""

import sys
from pathlib import Path

import pytest

from attnbench.harness.probes.kernels import kernels
from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID, FakeDriver
from tests.fakes.nvml.replay import KEYS, kept_bytes, recorded, script
from tests.gpu_day.steps import FIRST

pytestmark = pytest.mark.long

WORKSPACE_BYTES = 3 << 20
PROGRAM = f"""
import sys
import torch
from attnbench.harness.measure import clock
from tests.fakes.cuda import FakeGpu, RealClock, fake_cuda
from tests.gpu_day.record import record

clock.L2_FLUSH_BYTES = 1 << 20
gpu = FakeGpu(RealClock(), uuid={UUID.removeprefix("GPU-")!r})
gpu.workspace_bytes = {WORKSPACE_BYTES}
with fake_cuda(gpu), open(sys.argv[1], "w") as file:
    record(torch.device("cuda", 0), file, seconds=0.3)
"""


def record(driver: FakeDriver, path: Path) -> list[dict]:
    """The answers of NVML in a recording of the fake GPU and driver."""
    ran([sys.executable, "-c", PROGRAM, str(path)], env=environment(driver.environment), check=True)
    return recorded(path, "nvml")


def test_what_could_hang_comes_first_on_a_gpu_and_then_a_recording() -> None:
    assert [step.name for step in FIRST.steps[:2]] == ["launch-gluon", "record"]


def test_what_was_recorded_is_what_the_replaying_fakes_answer(fake_nvml, tmp_path) -> None:
    said = "power_w 412.5\nbusy_percent 97\nmemory_used_mib 1500.5\nsm_clock_mhz 1755\n"
    fake_nvml.write(H100 + said + "temperature_c unsupported\nevent_reasons 0x4\n")
    lines = record(fake_nvml, tmp_path / "first.jsonl")
    assert {line["phase"] for line in lines} == {"idle", "block", "steady"}
    assert "this GPU does not offer it" in lines[-1]["missing"]["temperature_c"]
    fake_nvml.write(script(lines[-1]["answers"]))
    again = record(fake_nvml, tmp_path / "again.jsonl")
    for name, _ in KEYS.values():
        assert again[-1]["answers"].get(name) == lines[-1]["answers"].get(name), name
    assert again[-1]["answers"]["power_w"] == 412.5


def test_a_recording_has_what_each_library_keeps_and_a_trace(fake_nvml, tmp_path) -> None:
    fake_nvml.write(H100)
    record(fake_nvml, path := tmp_path / "all.jsonl")
    allocations = recorded(path, "allocator")
    assert kept_bytes(allocations, "cublas") == WORKSPACE_BYTES
    assert kept_bytes(allocations, "cudnn") == 0
    (trace,) = recorded(path, "trace")
    assert trace["calls"] == 3
    assert any("scaled_dot_product" in str(event.get("name")) for event in trace["events"])
    assert kernels(trace["events"]) == [], "the fake GPU has no CUPTI"
