"""One window of one case: the probes that its measures ask for, over the same steady loop, and what
they saw.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..measure.steady_loop import Call, Replayed, Way, steady
from ..nvml import Device
from ..probes import own_calls, wanted


class Seen(NamedTuple):
    """A window as a row carries it, tables that are not of the window, and why columns are
    missing.
    """

    window: dict[str, Any] | None
    tables: dict[str, Any]
    missing: dict[str, str]


def look(
    call: Call,
    call_ms: float,
    window_s: float,
    measure: Sequence[str],
    way: Way,
    on: tuple[torch.device, Device],
) -> Seen:
    """Watch a warm call for one window. Nothing is timed meanwhile but the window itself."""
    device, watched = on
    shared = [probe for probe in wanted(measure) if own_calls(probe) is None]
    if way == "graph":
        try:
            call = Replayed(call, device)
        except (
            RuntimeError
        ) as error:  # calls that synchronize, or that allocate outside torch, cannot be captured
            return Seen(
                None,
                {},
                {"graph": f"cannot be captured: {str(error).strip().splitlines()[0][:200]}"},
            )
    watches = [probe.watch(watched) for probe in shared]
    stretch = steady(call, call_ms, window_s, list(watches), device)
    window: dict[str, Any] = {"way": way, "window_s": stretch.window_s, "calls": stretch.calls}
    missing: dict[str, str] = {}
    for watch in watches:
        values, reasons = watch.readings()
        window |= values
        missing |= reasons
    return Seen(window, {}, missing)


def dissect(call: Call, measure: Sequence[str], on: tuple[torch.device, Device]) -> Seen:
    """The probes that want calls of their own."""
    device, watched = on
    tables: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for probe in wanted(measure):
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
    return Seen(None, tables, missing)
