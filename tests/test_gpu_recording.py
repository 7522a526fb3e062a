"""What a day with a GPU records of it can be replayed by the fakes."""

import sys
from pathlib import Path

import pytest

from attnbench.harness.devices.probes.kernels import kernels
from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID, FakeDriver
from tests.fakes.nvml.replay import KEYS, kept_bytes, recorded, script

pytestmark = pytest.mark.nightly

WORKSPACE_BYTES = 3 << 20
FIXED = Path(__file__).parent / "fakes" / "nvml" / "h200.jsonl"  # of 2026-11-26, driver 580
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


@pytest.mark.parametrize("line", recorded(FIXED, "nvml"), ids=lambda line: line["phase"])
def test_the_fakes_answer_what_an_h200_answered(line, fake_nvml, tmp_path) -> None:
    fake_nvml.write(script(line["answers"]))
    again = record(fake_nvml, tmp_path / "again.jsonl")
    assert {line["phase"] for line in again} == {"idle", "block", "steady"}
    for name, _ in KEYS.values():
        assert again[-1]["answers"][name] == line["answers"][name], name


def test_an_answer_that_a_gpu_lacks_is_lacking_in_the_recording(fake_nvml, tmp_path) -> None:
    fake_nvml.write(H100 + "temperature_c unsupported\n")
    last = record(fake_nvml, tmp_path / "all.jsonl")[-1]
    assert "this GPU does not offer it" in last["missing"]["temperature_c"]


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
