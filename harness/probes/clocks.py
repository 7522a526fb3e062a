"""Clocks, temperature, and what held the clocks down.

They are the whole board's, also if an instance of it (MIG) is watched.
"""

from ..machine.nvml import BOARD_READINGS, Device, Gpu, Reading
from . import Readings, Watch, gpu_window

MEASURES = ("utilization", "energy")
COLUMNS = {
    "sm_clock_mhz": "clock of the SMs at the end of the window, under load",
    "memory_clock_mhz": "clock of the memory at the end of the window",
    "temperature_c": "of the die at the end of the window",
    "clock_event_mask": (
        "why the clock was below its maximum at the end of the window (nvml.h,"
        " nvmlClocksEventReasons)"
    ),
    "power_throttled_s": "how long the power limit held the clocks down during the window",
    "sync_boost_throttled_s": "how long other GPUs of a sync boost group held the clocks down",
}
THROTTLED_FIELDS = {"power_throttled_s": 74, "sync_boost_throttled_s": 76}
"""nvml.h, NVML_FI_DEV_PERF_POLICY_POWER and _SYNC_BOOST, in ns.

Only ids that never changed their meaning: the ids of the newer clock event counters meant other
quantities in other driver branches.
"""
NS = 1e9

Columns = dict[str, Reading]


def watch(device: Device) -> Watch:
    return gpu_window(device, COLUMNS, start=throttled_s, end=at_end, read=read)


def at_end(gpu: Gpu) -> Columns:
    found = {name: read(gpu) for name, read in BOARD_READINGS.items() if name in COLUMNS}
    return found | throttled_s(gpu)


def read(gpu: Gpu, start: Columns, end: Columns) -> Readings:
    return Readings.of(end | {name: grown(start[name], end[name]) for name in THROTTLED_FIELDS})


def throttled_s(gpu: Gpu) -> Columns:
    """The counters now."""
    fields = gpu.board.query("nvmlDeviceGetFieldValues", list(THROTTLED_FIELDS.values()))
    if fields.value is None:
        return dict.fromkeys(THROTTLED_FIELDS, fields)
    found = {}
    for name, field in zip(THROTTLED_FIELDS, fields.value, strict=True):
        if field.nvmlReturn == gpu.nvml.NVML_SUCCESS:
            found[name] = Reading(field.value.ullVal / NS)
        else:
            reason = f"field {field.fieldId}: {gpu.error_text(field.nvmlReturn)}"
            found[name] = Reading(None, reason)
    return found


def grown(start: Reading, end: Reading) -> Reading:
    if start.value is None or end.value is None:
        return Reading(None, start.reason or end.reason)
    return Reading(end.value - start.value)
