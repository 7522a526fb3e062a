"""One window of one case: the requested probes over one steady loop."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from ..devices.nvml import Device
from ..devices.probes import own_calls, requested
from ..measure.graph_capture import Call, not_captured
from ..measure.steady_loop import LaunchMode, as_graph, steady_loop


class Watched(NamedTuple):
    """A window as in a row, tables that are not of the window, and why columns are missing."""

    window: dict[str, Any] | None
    tables: dict[str, Any]
    missing: dict[str, str]


def watch_window(
    call: Call,
    anew: Callable[[], Call],
    call_ms: float,
    window_s: float,
    measure: Sequence[str],
    mode: LaunchMode,
    on: tuple[torch.device, Device],
) -> Watched:
    """Watch a warm call for one window. Nothing but the window itself is timed meanwhile.

    `anew` makes the same call again, for a graph.
    """
    device, watched = on
    probes = [probe for probe in requested(measure) if own_calls(probe) is None]
    if mode == "graph":
        try:
            call = as_graph(anew, device)
        except RuntimeError as error:
            return Watched(None, {}, {"graph": not_captured(error)})
    watches = [probe.watch(watched) for probe in probes]
    done = steady_loop(call, call_ms, window_s, list(watches), device)
    window: dict[str, Any] = {"way": mode, "window_s": done.window_s, "calls": done.calls}
    missing: dict[str, str] = {}
    for watch in watches:
        values, reasons = watch.readings()
        window |= values
        missing |= reasons
    return Watched(window, {}, missing)


def profile_kernels(call: Call, measure: Sequence[str], on: tuple[torch.device, Device]) -> Watched:
    """The probes that make calls of their own."""
    device, watched = on
    tables: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for probe in requested(measure):
        calls = own_calls(probe)
        if calls is None:
            continue
        watch = probe.watch(watched)
        with watch:
            for _ in range(calls):
                call()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        values, reasons = watch.readings()
        tables |= values
        missing |= reasons
    return Watched(None, tables, missing)
