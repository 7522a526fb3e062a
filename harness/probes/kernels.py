"""Anatomy of a call: which kernels run, how often, for how long, in which shape. By torch.profiler,
so it works for every backend.

The profiler slows launching down, so its times are of the device only, and it gets calls of its
own. On a CPU the entries are torch's operators with the time spent in themselves; grids and
registers are a GPU's and null there.
"""

import json
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.profiler import ProfilerActivity, profile

from ..nvml import Device
from . import Readings

MEASURES = ("kernels",)
CALLS = 5
COLUMNS = {
    "kernel_table": (
        "per kernel and launch shape: name, launch_count and time_ms over the profiled calls, grid,"
        " block, thread_register_count, block_shared_bytes, occupancy_ratio (estimated by the"
        " profiler)"
    ),
    "profiled_call_count": "calls that kernel_table sums over",
}
MOST_ENTRIES = 40
"""Of the table, longest first; the last one then sums up the rest."""
REST = "(all others)"
SHAPE = {
    "grid": "grid",
    "block": "block",
    "thread_register_count": "registers per thread",
    "block_shared_bytes": "shared memory",
}  # ours: the profiler's
OCCUPANCY = "est. achieved occupancy %"


class KernelsWatch:
    def __init__(self, device: Device) -> None:
        self.on_gpu = device.uuid is not None
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_gpu else [])]
        self.profile = profile(activities=activities)

    def __enter__(self) -> "KernelsWatch":
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the profiler warns of what it cannot see on a machine without a GPU
            self.profile.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.profile.__exit__(kind, error, trace)

    def readings(self) -> Readings:
        found = kernels(self._events()) if self.on_gpu else self._operators()
        if not found:
            return Readings(
                {"kernel_table": None, "profiled_call_count": CALLS},
                {"kernel_table": "the profiler saw no kernel"},
            )
        return Readings({"kernel_table": shortened(found), "profiled_call_count": CALLS}, {})

    def _events(self) -> list[dict[str, Any]]:
        """The trace's events: only its file has the launch shapes."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            self.profile.export_chrome_trace(str(path))
            events: list[dict[str, Any]] = json.loads(path.read_bytes())["traceEvents"]
        return events

    def _operators(self) -> list[dict[str, Any]]:
        averages = self.profile.key_averages()
        return [
            entry(one.key, one.count, one.self_cpu_time_total / 1e3)
            for one in averages
            if one.self_cpu_time_total > 0 and one.key.startswith("aten::")
        ]


def entry(name: str, launch_count: int, time_ms: float, **shape: Any) -> dict[str, Any]:
    empty = dict.fromkeys((*SHAPE, "occupancy_ratio"))
    return {"name": name, "launch_count": launch_count, "time_ms": time_ms, **empty, **shape}


def kernels(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per kernel and launch shape, from the events of a trace; memory copies and fills
    count as kernels.
    """
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        arguments = event.get("args", {})
        shape = {ours: arguments.get(theirs) for ours, theirs in SHAPE.items()}
        one = found.setdefault(
            json.dumps([event["name"], shape]), entry(event["name"], 0, 0.0, **shape)
        )
        one["launch_count"] += 1
        one["time_ms"] += event.get("dur", 0) / 1e3
        if arguments.get(OCCUPANCY) is not None:
            one["occupancy_ratio"] = arguments[OCCUPANCY] / 100
    return list(found.values())


def shortened(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Longest first, and what is beyond the most entries summed up, so that nothing is dropped from
    the sum.
    """
    ordered = sorted(table, key=lambda one: -one["time_ms"])
    if len(ordered) <= MOST_ENTRIES:
        return ordered
    kept, rest = ordered[: MOST_ENTRIES - 1], ordered[MOST_ENTRIES - 1 :]
    return [
        *kept,
        entry(REST, sum(one["launch_count"] for one in rest), sum(one["time_ms"] for one in rest)),
    ]


def watch(device: Device) -> KernelsWatch:
    return KernelsWatch(device)
