"""Energy of the whole board, from the driver's counter of millijoules since it was loaded (nvml.h,
nvmlDeviceGetTotalEnergyConsumption).

The counter moves in steps of some 20 to 100 ms, so a window of W seconds is off by at most two
steps: 0.2 / W.
"""

import time
from types import TracebackType

from ..nvml import Answer, Device, Gpu, open_gpu
from . import Readings, nothing

MEASURES = ("energy",)
COLUMNS = {
    "energy_j": "what the board used during the window; over its calls: J per call",
    "power_w": "mean power of the board during the window",
}


class EnergyWatch:
    def __init__(self, device: Device) -> None:
        opened = open_gpu(device)
        self.gpu: Gpu | None = opened.value
        self.reason = opened.reason
        if self.gpu and self.gpu.instance is not None:
            self.gpu, self.reason = (
                None,
                "the counter is the whole board's, and other instances (MIG) are in it",
            )
        self.start = self.end = Answer(None, "never entered")
        self.start_s = self.end_s = 0.0

    def __enter__(self) -> "EnergyWatch":
        self.start, self.start_s = self._counter(), time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end, self.end_s = self._counter(), time.monotonic()

    def _counter(self) -> Answer:
        return (
            self.gpu.ask("nvmlDeviceGetTotalEnergyConsumption")
            if self.gpu
            else Answer(None, self.reason)
        )

    def readings(self) -> Readings:
        for counter in (self.start, self.end):
            if counter.value is None:
                return nothing(COLUMNS, counter.reason)
        energy_j = (self.end.value - self.start.value) / 1e3
        if energy_j <= 0:
            return nothing(COLUMNS, "the counter did not move during the window")
        return Readings(
            {"energy_j": energy_j, "power_w": energy_j / (self.end_s - self.start_s)}, {}
        )


def watch(device: Device) -> EnergyWatch:
    return EnergyWatch(device)
