"""Which kernels a call runs, how often, for how long, in which launch shape, by torch.profiler.

The profiler slows launching down, so its times are the device's only, and it gets calls of its own.
On a CPU the entries are torch's operators with their self time; grids and registers are null there.
On a GPU kernels are seen by CUPTI, whose fields are all optional.
"""

import json
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile, supported_activities

from ..nvml import Device, Reading, plausible
from . import Watch, Window, missing_window

MEASURES = ("kernels",)
CALLS = 5
COLUMNS = {
    "kernel_table": (
        "per kernel and launch shape: name, launch_count, time_ms, grid, block,"
        " thread_register_count, block_shared_bytes, waves, occupancy_ratio (estimated)"
    ),
    "profiled_call_count": "calls that kernel_table sums over",
}
MOST_ENTRIES = 40
"""The longest; the last one sums up the rest."""
REST = "(all others)"
SHAPE = {
    "grid": "grid",
    "block": "block",
    "thread_register_count": "registers per thread",
    "block_shared_bytes": "shared memory",
    "waves": "blocks per SM",
}
"""Our names: the profiler's (libkineto, CuptiActivity.cpp)."""
OCCUPANCY = "est. achieved occupancy %"
"""Resident warps over the most that fit: as many blocks as registers, shared memory and threads of
an SM allow, or as it gets of the grid, if those are fewer. A calculation, in spite of its name.
"""
NO_CUPTI = "torch's profiler lacks CUPTI here and sees no GPU kernel"
NO_KERNEL = "the profiler saw no kernel"


def watch(device: Device) -> Watch:
    on_gpu = device.uuid is not None
    if on_gpu and ProfilerActivity.CUDA not in supported_activities():
        return missing_window(COLUMNS, NO_CUPTI)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    profiler = profile(activities=activities)

    def start() -> None:
        with warnings.catch_warnings():  # about what it cannot see without a GPU
            warnings.simplefilter("ignore")
            profiler.__enter__()

    def read(start: None, end: None) -> dict[str, Any]:
        found = kernels(trace_events(profiler)) if on_gpu else operators(profiler)
        table = Reading(shortened(found)) if found else Reading(None, NO_KERNEL)
        return {"kernel_table": table, "profiled_call_count": CALLS}

    return Window(start=start, end=lambda: profiler.__exit__(None, None, None), read=read)


def trace_events(profiler: profile) -> list[dict[str, Any]]:
    """Only the trace's file has the launch shapes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[dict[str, Any]] = json.loads(path.read_bytes())["traceEvents"]
    return events


def operators(profiler: profile) -> list[dict[str, Any]]:
    return [
        entry(one.key, one.count, one.self_cpu_time_total / 1e3)
        for one in profiler.key_averages()
        if one.self_cpu_time_total > 0 and one.key.startswith("aten::")
    ]


def entry(name: str, launch_count: int, time_ms: float, **shape: Any) -> dict[str, Any]:
    empty = dict.fromkeys((*SHAPE, "occupancy_ratio"))
    return {"name": name, "launch_count": launch_count, "time_ms": time_ms, **empty, **shape}


def kernels(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per kernel and launch shape; memory copies and fills count as kernels."""
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        arguments = event.get("args", {})
        shape = {ours: arguments.get(theirs) for ours, theirs in SHAPE.items()}
        if not isinstance(shape["waves"], int | float):  # "inf" of a GPU that it does not know
            shape["waves"] = None
        key = json.dumps([event["name"], shape])
        one = found.setdefault(key, entry(event["name"], 0, 0.0, **shape))
        one["launch_count"] += 1
        one["time_ms"] += event.get("dur", 0) / 1e3
        if arguments.get(OCCUPANCY) is not None:
            found_ratio = Reading(arguments[OCCUPANCY] / 100)
            one["occupancy_ratio"] = plausible("occupancy_ratio", found_ratio).value
    return list(found.values())


def shortened(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Longest first; entries beyond the limit are summed up in the last one."""
    ordered = sorted(table, key=lambda one: -one["time_ms"])
    if len(ordered) <= MOST_ENTRIES:
        return ordered
    first, rest = ordered[: MOST_ENTRIES - 1], ordered[MOST_ENTRIES - 1 :]
    launches, time_ms = (sum(one[name] for one in rest) for name in ("launch_count", "time_ms"))
    return [*first, entry(REST, launches, time_ms)]
