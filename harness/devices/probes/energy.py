"""Energy of the whole board, from the driver's counter of millijoules since it was loaded.

nvml.h, nvmlDeviceGetTotalEnergyConsumption. The counter moves in steps of 20 to 100 ms, so the
energy of a window of W seconds is off by at most two steps: 0.2 / W.
"""

import time

from ..nvml import Device, Gpu, Reading
from . import Watch, gpu_window, missing

MEASURES = ("energy",)
COLUMNS = {
    "energy_j": "used by the board during the window; divided by its calls: J per call",
    "power_w": "mean power of the board during the window",
}


def watch(device: Device) -> Watch:
    board_only = "the counter is the whole board's, other instances (MIG) included"
    return gpu_window(
        device, COLUMNS, start=counter_mj, end=counter_mj, read=read, board_only=board_only
    )


def counter_mj(gpu: Gpu) -> tuple[Reading, float]:
    """The counter, and the time in seconds."""
    return gpu.query("nvmlDeviceGetTotalEnergyConsumption"), time.monotonic()


def read(gpu: Gpu, start: tuple[Reading, float], end: tuple[Reading, float]) -> dict[str, Reading]:
    (start_mj, start_s), (end_mj, end_s) = start, end
    for counter in (start_mj, end_mj):
        if counter.value is None:
            return missing(COLUMNS, counter.reason)
    energy_j = (end_mj.value - start_mj.value) / 1e3
    if energy_j <= 0:
        return missing(COLUMNS, "the counter did not move during the window")
    power_w = Reading(energy_j / (end_s - start_s))
    return {"energy_j": Reading(energy_j), "power_w": power_w}
