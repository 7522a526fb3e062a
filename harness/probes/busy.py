"""What `nvidia-smi` calls GPU utilization: the share of time in which any kernel ran at all. One
warp counts as much as a full GPU.

Read from the driver's own ring of samples, after the fact: nvml.h, nvmlDeviceGetSamples. The first
and the last sample of a window are left out, since they cover time outside it.
"""

import time
from types import TracebackType
from typing import Any

from ..nvml import Answer, Device, Gpu, open_gpu
from . import Readings, nothing, told

MEASURES = ("utilization",)
COLUMNS = {
    "kernel_busy_ratio": "of the time: that in which at least one kernel ran",
    "memory_busy_ratio": "of the time: that in which device memory was read or written",
    "busy_sample_count": "the driver's samples of kernel_busy_ratio that lie inside the window",
}
EDGES = 2  # samples at the ends of a window that also cover time outside it


class BusyWatch:
    def __init__(self, device: Device) -> None:
        opened = open_gpu(device)
        self.gpu: Gpu | None = opened.value
        self.reason = opened.reason
        self.entered_us = self.left_us = 0

    def __enter__(self) -> "BusyWatch":
        self.entered_us = time.time_ns() // 1000  # the driver's samples carry UNIX time
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.left_us = time.time_ns() // 1000

    def readings(self) -> Readings:
        if self.gpu is None:
            return nothing(COLUMNS, self.reason)
        if self.gpu.instance is not None:
            return nothing(
                COLUMNS,
                "the driver counts busy time for whole GPUs only, not for an instance (MIG)",
            )
        kernels = self._inside(self.gpu, self.gpu.nvml.NVML_GPU_UTILIZATION_SAMPLES)
        memory = self._inside(self.gpu, self.gpu.nvml.NVML_MEMORY_UTILIZATION_SAMPLES)
        found = {
            "kernel_busy_ratio": mean_ratio(kernels),
            "memory_busy_ratio": mean_ratio(memory),
            "busy_sample_count": kernels if kernels.value is None else Answer(len(kernels.value)),
        }
        return told(found)

    def _inside(self, gpu: Gpu, kind: int) -> Answer:
        """Percentages of the samples that lie wholly inside the window."""
        answer = gpu.ask("nvmlDeviceGetSamples", kind, self.entered_us)
        if answer.value is None:
            return answer
        return percentages(answer.value, self.entered_us, self.left_us)


def percentages(answer: tuple[int, list[Any]], from_us: int, until_us: int) -> Answer:
    """Values of the samples between two times, without the first and the last; impossible ones are
    left out (Syllo/nvtop#110).
    """
    stamped = sorted(
        (sample.timeStamp, sample.sampleValue.uiVal)
        for sample in answer[1]
        if from_us < sample.timeStamp <= until_us
    )
    if not stamped:
        return Answer(
            None,
            "the driver's ring holds no sample of the window: it is stale, or the window too short",
        )
    if len(stamped) <= EDGES:
        return Answer(
            None,
            f"the window holds {len(stamped)} of the driver's samples, of which the first and the"
            " last do not count",
        )
    values = [value for _, value in stamped[1:-1] if value <= 100]
    return Answer(values) if values else Answer(None, "the driver gave impossible values only")


def mean_ratio(values: Answer) -> Answer:
    return values if values.value is None else Answer(sum(values.value) / len(values.value) / 100)


def watch(device: Device) -> BusyWatch:
    return BusyWatch(device)
