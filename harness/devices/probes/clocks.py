"""Clocks, temperature, and what held the clocks down.

They are the whole board's, also if an instance of it (MIG) is watched.
"""

from ..nvml import BOARD_READINGS, Device, Gpu, Reading, throttled_s
from . import Watch, gpu_window

MEASURES = ("utilization", "energy")
COLUMNS = {
    "sm_clock_mhz": "clock of the SMs at the end of the window, under load",
    "memory_clock_mhz": "clock of the memory at the end of the window",
    "temperature_c": "of the die at the end of the window",
    "clock_event_mask": "why the clock was below its maximum (nvml.h, nvmlClocksEventReasons)",
    "power_throttled_s": "how long the power limit held the clocks down",
    "sync_boost_throttled_s": "how long other GPUs of a sync boost group held them down",
}
THROTTLED = ("power_throttled_s", "sync_boost_throttled_s")

Columns = dict[str, Reading]


def watch(device: Device) -> Watch:
    return gpu_window(device, COLUMNS, start=throttled_s, end=at_end, read=read)


def at_end(gpu: Gpu) -> Columns:
    now = {name: read(gpu) for name, read in BOARD_READINGS.items() if name in COLUMNS}
    return now | throttled_s(gpu)


def read(gpu: Gpu, start: Columns, end: Columns) -> Columns:
    during = {name: grown(start[name], end[name]) for name in THROTTLED}
    return {name: (end | during)[name] for name in COLUMNS}


def grown(start: Reading, end: Reading) -> Reading:
    if start.value is None or end.value is None:
        return Reading(None, start.reason or end.reason)
    return Reading(end.value - start.value)
