"""A made-up calibration of a GPU."""

from tests.fakes.nvml.driver import UUID

GPU = "NVIDIA H100 PCIe"
PEAK = "gemm_bf16_flops_per_s"


def made(**changes):
    return {
        "schema": 1,
        "utc": "2026-01-01T00:00:00+00:00",
        "device": "cuda",
        "device_name": GPU,
        "device_uuid": UUID,
        "torch": "2.11",
        "peaks": {PEAK: 5e14},
        "clocks_mhz": {PEAK: 1700.0},
        "specified": {PEAK: 756e12},
        "checks": [{"name": "a", "wanted": "b", "found": 1.0, "verdict": "ok", "reason": ""}],
        "samples": {PEAK: {"work": 1e12, "block_ms": [[2.0], [2.0, 2.02], [2.02]]}},
        **changes,
    }
