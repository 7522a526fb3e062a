"""Hopper's performance counters through NVML: how much of the GPU works.

All columns come from one pair of samples and are averages over the time between them and over all
SMs. Sources: nvml.h, nvmlGpmMetricId_t; NVIDIA's DCGM field identifiers 1001 to 1007, which name
the same counters.
"""

import time
from typing import Any

from ..nvml import Device, Gpu, Reading, call, open_gpu
from . import Watch, Window, missing, missing_window

MEASURES = ("utilization",)
COLUMNS = {
    "sm_active_ratio": "share of all cycles of all SMs with at least one warp resident",
    "sm_occupancy_ratio": "resident warps over the most that fit, averaged over all SMs and cycles",
    "any_tensor_ratio": "share of all cycles in which a tensor core of any kind worked",
    "hmma_ratio": "share of all cycles in which a tensor core worked on fp16 or bf16",
    "dram_bandwidth_ratio": "share of the memory's peak bandwidth",
    "graphics_ratio": "share of the time in which any context was active",
}
METRIC_IDS = {
    "sm_active_ratio": 2,
    "sm_occupancy_ratio": 3,
    "any_tensor_ratio": 5,
    "hmma_ratio": 7,
    "dram_bandwidth_ratio": 10,
    "graphics_ratio": 1,
}  # nvml.h, nvmlGpmMetricId_t
SHORTEST_S = 0.1  # nvml.h: samples less than 100 ms apart mean nothing


def watch(device: Device) -> Watch:
    gpu, reason = open_gpu(device)
    samples, reason = allocate(gpu) if gpu else (None, reason)
    if samples is None:
        return missing_window(COLUMNS, reason)

    def read(start: tuple[Reading, float], end: tuple[float, Reading]) -> dict[str, Reading]:
        (first, start_s), (end_s, second) = start, end
        try:
            reason = first.reason or second.reason
            if not reason and end_s - start_s < SHORTEST_S:
                reason = f"the window was shorter than {SHORTEST_S:g} s"
            return missing(COLUMNS, reason) if reason else compare(gpu, *samples)
        finally:
            free(samples)

    return Window(
        start=lambda: (take(gpu, samples[0]), time.monotonic()),
        end=lambda: (time.monotonic(), take(gpu, samples[1])),
        read=read,
    )


def allocate(gpu: Gpu) -> Reading:
    """Two samples."""
    support = gpu.board.query("nvmlGpmQueryDeviceSupport")
    if support.value is None or not support.value.isSupportedDevice:
        no_counters = "this GPU has no such counters; they came with Hopper"
        return Reading(None, support.reason or no_counters)
    samples = [call("nvmlGpmSampleAlloc") for _ in range(2)]
    allocated = [sample.value for sample in samples if sample.value is not None]
    if len(allocated) < len(samples):
        free(allocated)
        return Reading(None, next(sample.reason for sample in samples if sample.reason))
    return Reading(allocated)


def free(samples: list[Any]) -> None:
    while samples:
        call("nvmlGpmSampleFree", samples.pop())


def take(gpu: Gpu, sample: Any) -> Reading:
    if gpu.instance is None:
        return gpu.query("nvmlGpmSampleGet", sample)
    return gpu.board.query("nvmlGpmMigSampleGet", gpu.instance, sample)


def compare(gpu: Gpu, first: Any, second: Any) -> dict[str, Reading]:
    """The columns, averaged over the time between two samples."""
    nvml = gpu.nvml
    request = nvml.c_nvmlGpmMetricsGet_t()
    request.version = nvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(METRIC_IDS)
    request.sample1, request.sample2 = first, second
    for place, number in enumerate(METRIC_IDS.values()):
        request.metrics[place].metricId = number
    filled = call("nvmlGpmMetricsGet", request)
    if filled.value is None:
        return missing(COLUMNS, filled.reason)
    metrics = filled.value.metrics
    return {name: ratio(gpu, metrics[i]) for i, name in enumerate(METRIC_IDS)}


def ratio(gpu: Gpu, metric: Any) -> Reading:
    """NVML gives percent, and each metric has its own error."""
    if metric.nvmlReturn != gpu.nvml.NVML_SUCCESS:
        return Reading(None, f"GPM metric {metric.metricId}: {gpu.error_text(metric.nvmlReturn)}")
    return Reading(metric.value / 100)
