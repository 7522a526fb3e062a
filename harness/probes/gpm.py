"""Hopper's performance counters through NVML: how much of the GPU is at work, not only whether some
kernel runs.

All numbers come from one pair of samples and are averages over the time between them, and over all
SMs. Sources: nvml.h, nvmlGpmMetricId_t; NVIDIA's DCGM field identifiers 1001 to 1007, which name
the same counters.
"""

import time
from math import isfinite
from types import TracebackType
from typing import Any

from ..nvml import Answer, Device, Gpu, open_gpu
from . import Readings, nothing, told

MEASURES = ("utilization",)
COLUMNS = {
    "sm_active_ratio": "of all cycles of all SMs: those with at least one warp resident",
    "sm_occupancy_ratio": "resident warps over the most that fit, averaged over all SMs and cycles",
    "any_tensor_ratio": "of all cycles: those in which a tensor core of any kind was at work",
    "hmma_ratio": "of all cycles: those in which a tensor core worked on fp16 or bf16",
    "dram_bandwidth_ratio": "of the memory's highest bandwidth: what was used",
    "graphics_ratio": "of the time: that in which any context was active",
}
METRIC_IDS = {
    "sm_active_ratio": 2,
    "sm_occupancy_ratio": 3,
    "any_tensor_ratio": 5,
    "hmma_ratio": 7,
    "dram_bandwidth_ratio": 10,
    "graphics_ratio": 1,
}  # nvml.h, nvmlGpmMetricId_t
SHORTEST_S = 0.1  # nvml.h: samples nearer to each other than 100 ms mean nothing


class GpmWatch:
    def __init__(self, device: Device) -> None:
        opened = open_gpu(device)
        self.gpu: Gpu | None = opened.value
        self.reason = opened.reason
        self.samples: list[Any] = []
        self.entered_s = self.left_s = 0.0
        if self.gpu:
            self._allocate(self.gpu)

    def _allocate(self, gpu: Gpu) -> None:
        support = gpu.board.ask("nvmlGpmQueryDeviceSupport")
        if support.value is None or not support.value.isSupportedDevice:
            self.reason = support.reason or "this GPU has no such counters; they came with Hopper"
            return
        for _ in range(2):
            sample = gpu.call("nvmlGpmSampleAlloc")
            self.reason = self.reason or sample.reason
            if sample.value is not None:
                self.samples.append(sample.value)

    def __enter__(self) -> "GpmWatch":
        self._take(0)
        self.entered_s = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.left_s = time.monotonic()
        self._take(1)

    def _take(self, which: int) -> None:
        if self.gpu is None or self.reason:
            return
        sample = self.samples[which]
        if self.gpu.instance is None:
            taken = self.gpu.call("nvmlGpmSampleGet", self.gpu.handle, sample)
        else:
            taken = self.gpu.call(
                "nvmlGpmMigSampleGet", self.gpu.board.handle, self.gpu.instance, sample
            )
        self.reason = taken.reason

    def readings(self) -> Readings:
        try:
            return self._read()
        finally:
            while self.gpu and self.samples:
                self.gpu.call("nvmlGpmSampleFree", self.samples.pop())

    def _read(self) -> Readings:
        if self.gpu is None or self.reason:
            return nothing(COLUMNS, self.reason)
        if self.left_s - self.entered_s < SHORTEST_S:
            return nothing(COLUMNS, f"the window was shorter than {SHORTEST_S:g} s")
        answer = metrics(self.gpu, self.samples)
        if answer.value is None:
            return nothing(COLUMNS, answer.reason)
        found = {
            name: metric(self.gpu, answer.value.metrics[place])
            for place, name in enumerate(METRIC_IDS)
        }
        return told(found)


def metrics(gpu: Gpu, samples: list[Any]) -> Answer:
    """The filled structure of nvmlGpmMetricsGet for all columns."""
    nvml = gpu.nvml
    wanted = nvml.c_nvmlGpmMetricsGet_t()
    wanted.version = nvml.NVML_GPM_METRICS_GET_VERSION
    wanted.numMetrics = len(METRIC_IDS)
    wanted.sample1, wanted.sample2 = samples
    for place, number in enumerate(METRIC_IDS.values()):
        wanted.metrics[place].metricId = number
    return gpu.call("nvmlGpmMetricsGet", wanted)


def metric(gpu: Gpu, found: Any) -> Answer:
    """One metric as a ratio: NVML gives percent, and an error of its own for each."""
    if found.nvmlReturn != gpu.nvml.NVML_SUCCESS:
        return Answer(None, f"GPM metric {found.metricId}: {gpu.words(found.nvmlReturn)}")
    if not isfinite(found.value):
        return Answer(None, f"GPM metric {found.metricId}: the driver gave {found.value}")
    return Answer(found.value / 100)


def watch(device: Device) -> GpmWatch:
    return GpmWatch(device)
