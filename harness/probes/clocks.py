"""Clocks, temperature and what held them back. They belong to the whole board, also where an
instance of it (MIG) is watched.
"""

from types import TracebackType

from ..nvml import Answer, Device, Gpu, clock_event_reasons, open_gpu, temperature_c
from . import Readings, nothing, told

MEASURES = ("utilization", "energy")
COLUMNS = {
    "sm_clock_mhz": "clock of the SMs at the end of the window, under load",
    "memory_clock_mhz": "clock of the memory at the end of the window",
    "temperature_c": "of the die at the end of the window",
    "clock_event_mask": (
        "reasons why the clock was not at its highest, at the end of the window (nvml.h,"
        " nvmlClocksEventReasons)"
    ),
    "power_throttled_s": "for how long the power limit held the clocks down during the window",
    "sync_boost_throttled_s": "for how long other GPUs of a sync boost group held the clocks down",
}
VIOLATIONS = {"power_throttled_s": 74, "sync_boost_throttled_s": 76}
"""nvml.h, NVML_FI_DEV_PERF_POLICY_POWER and _SYNC_BOOST, in ns. Only ids that never changed their
meaning: those of the newer clock event counters were given to other quantities between driver
branches."""
NS = 1e9


class ClocksWatch:
    def __init__(self, device: Device) -> None:
        opened = open_gpu(device)
        self.gpu: Gpu | None = opened.value
        self.reason = opened.reason
        self.start: dict[str, Answer] = {}
        self.end: dict[str, Answer] = {}
        self.at_end: dict[str, Answer] = {}

    def __enter__(self) -> "ClocksWatch":
        if self.gpu:
            self.start = violations(self.gpu)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.gpu:
            nvml, board = self.gpu.nvml, self.gpu.board
            self.at_end = {
                "sm_clock_mhz": board.ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
                "memory_clock_mhz": board.ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
                "temperature_c": temperature_c(self.gpu),
                "clock_event_mask": clock_event_reasons(self.gpu),
            }
            self.end = violations(self.gpu)

    def readings(self) -> Readings:
        if self.gpu is None or not self.end:
            return nothing(COLUMNS, self.reason or "never entered")
        found = self.at_end | {name: grown(self.start[name], self.end[name]) for name in VIOLATIONS}
        return told({name: found[name] for name in COLUMNS})


def violations(gpu: Gpu) -> dict[str, Answer]:
    """The counters now, in seconds."""
    answer = gpu.board.ask("nvmlDeviceGetFieldValues", list(VIOLATIONS.values()))
    if answer.value is None:
        return dict.fromkeys(VIOLATIONS, answer)
    found = {}
    for name, one in zip(VIOLATIONS, answer.value, strict=True):
        good = one.nvmlReturn == gpu.nvml.NVML_SUCCESS
        found[name] = (
            Answer(one.value.ullVal / NS)
            if good
            else Answer(None, f"field {one.fieldId}: {gpu.words(one.nvmlReturn)}")
        )
    return found


def grown(start: Answer, end: Answer) -> Answer:
    return (
        Answer(None, start.reason or end.reason)
        if None in (start.value, end.value)
        else Answer(end.value - start.value)
    )


def watch(device: Device) -> ClocksWatch:
    return ClocksWatch(device)
