"""What `nvidia-smi` calls GPU utilization: the share of time in which any kernel ran.

One warp counts as much as a full GPU. Read after the window from the driver's own ring of samples
(nvml.h, nvmlDeviceGetSamples). The first and the last sample of a window are left out, since they
also cover time outside it.
"""

import time
from typing import Any

from ..nvml import Device, Gpu, Reading, plausible
from . import Watch, gpu_window

MEASURES = ("utilization",)
COLUMNS = {
    "kernel_busy_ratio": "share of the time in which a kernel ran",
    "memory_busy_ratio": "share of the time in which device memory was read or written",
    "busy_sample_count": "the driver's samples inside the window",
}
EDGES = 2  # samples at the ends of a window that also cover time outside it
BOARD_ONLY = "the driver counts busy time for whole GPUs only, not for an instance (MIG)"


def watch(device: Device) -> Watch:
    return gpu_window(device, COLUMNS, start=unix_us, end=unix_us, read=read, board_only=BOARD_ONLY)


def unix_us(_: Gpu) -> int:
    """UNIX time, which the driver's samples carry."""
    return time.time_ns() // 1000


def read(gpu: Gpu, start_us: int, end_us: int) -> dict[str, Reading]:
    kernels, memory = (
        percentages(gpu, getattr(gpu.nvml, f"NVML_{kind}_UTILIZATION_SAMPLES"), start_us, end_us)
        for kind in ("GPU", "MEMORY")
    )
    return {
        "kernel_busy_ratio": kernels.map(mean_ratio),
        "memory_busy_ratio": memory.map(mean_ratio),
        "busy_sample_count": kernels.map(len),
    }


def mean_ratio(percentages: list[int]) -> float:
    return sum(percentages) / len(percentages) / 100


def percentages(gpu: Gpu, kind: int, start_us: int, end_us: int) -> Reading:
    """Busy time in percent, of each sample that lies wholly between two times."""
    ring = gpu.query("nvmlDeviceGetSamples", kind, start_us)
    if ring.value is None:
        return ring
    samples: list[Any] = sorted(ring.value[1], key=lambda sample: sample.timeStamp)
    inside = [s.sampleValue.uiVal for s in samples if start_us < s.timeStamp <= end_us]
    if not inside:
        reason = "the driver kept no sample of the window, which may be too short"
        return Reading(None, reason)
    if len(inside) <= EDGES:
        reason = (
            f"only {len(inside)} samples of the driver in the window; the first and the last do not"
            " count"
        )
        return Reading(None, reason)
    wrong = (plausible("busy_ratio", Reading(value / 100)) for value in inside[1:-1])
    return next((one for one in wrong if one.reason), Reading(inside[1:-1]))
