"""A made-up calibration of a GPU."""

from attnbench.harness.doctor.calibrate import Calibration, Check
from attnbench.harness.doctor.peaks import Peak
from attnbench.harness.measure.physical_floor import specified
from tests.fakes.nvml.driver import UUID

GPU = "NVIDIA H100 PCIe"
PEAK = Peak(name="gemm_bf16_flops_per_s", work=1e12, block_ms=[[2.0], [2.0, 2.02], [2.02]])


def made(**changes):
    values = {
        "utc": "2026-01-01T00:00:00+00:00",
        "device": "cuda",
        "device_name": GPU,
        "device_uuid": UUID,
        "torch": "2.11",
        "peaks": [PEAK],
        "specified": specified(GPU),
        "checks": [Check(name="a", wanted="b", found=1.0, verdict="ok")],
    }
    return Calibration(**values | changes)
