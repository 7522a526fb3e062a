"""Keep a device at the same work for some seconds, because its counters are averages over time."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from math import ceil
from typing import Literal

import torch

from .graph_capture import Call, captured_graph

LEAD_S = 0.3  # of work before the window, for counters that are averages of the last moments
STEP_S = 1e-3
"""Work between two looks at the device.

Shorter calls are launched several at a time: an event after each would be work of its own.
"""
FLIGHT_S = 0.05
"""Work launched ahead, so that the device stays busy while the host reads the counters."""
MAX_STEPS = 64

LaunchMode = Literal["eager", "graph"]
Watches = list[AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """What was done between entering and leaving the watches."""

    window_s: float
    calls: int


def steady_loop(
    call: Call, call_ms: float, window_s: float, watches: Watches, device: torch.device
) -> LoopResult:
    """Repeat a call for at least `window_s`, and at least once, with the watches open.

    On a GPU the work goes on for a little before and after.
    """
    run = _cuda if device.type == "cuda" else _cpu
    return run(call, call_ms, window_s, watches, device)


def _cpu(
    call: Call, call_ms: float, window_s: float, watches: Watches, device: torch.device
) -> LoopResult:
    calls = 0
    with ExitStack() as open_watches:
        for watch in watches:
            open_watches.enter_context(watch)
        start = time.perf_counter()
        while calls == 0 or time.perf_counter() - start < window_s:
            call()
            calls += 1
        spent_s = time.perf_counter() - start
    return LoopResult(window_s=spent_s, calls=calls)


def _cuda(
    call: Call, call_ms: float, window_s: float, watches: Watches, device: torch.device
) -> LoopResult:
    """A window begins and ends just when a step ends on the device, with further steps launched.

    So its calls are counted exactly.
    """
    queue = _Queue(call, call_ms)
    queue.run(LEAD_S)
    with ExitStack() as open_watches:
        before = queue.step()
        start = time.perf_counter()
        for watch in watches:
            open_watches.enter_context(watch)
        after = queue.run(window_s)
        spent_s = time.perf_counter() - start
    torch.cuda.synchronize(device)
    return LoopResult(window_s=spent_s, calls=after - before)


class _Queue:
    """Steps of calls that are launched ahead of the device, up to a limit."""

    def __init__(self, call: Call, call_ms: float) -> None:
        self.call = call
        self.per_step = max(1, ceil(STEP_S / max(call_ms / 1e3, 1e-6)))
        step_s = max(call_ms / 1e3 * self.per_step, 1e-6)
        self.ahead = max(2, min(MAX_STEPS, ceil(FLIGHT_S / step_s)))
        self.events: deque[torch.cuda.Event] = deque()
        self.done = 0

    def step(self) -> int:
        """Launch steps until enough are in flight and wait for the oldest.

        Returns how many calls the device has done in all.
        """
        while len(self.events) <= self.ahead:
            for _ in range(self.per_step):
                self.call()
            event = torch.cuda.Event(blocking=True)
            event.record()
            self.events.append(event)
        self.events.popleft().synchronize()
        self.done += self.per_step
        return self.done

    def run(self, seconds: float) -> int:
        """Steps for at least that long, and at least one."""
        start = time.perf_counter()
        done = self.step()
        while time.perf_counter() - start < seconds:
            done = self.step()
        return done


def as_graph(anew: Callable[[], Call], device: torch.device) -> Call:
    """The call that `anew` makes, as a CUDA graph to replay, without the flush and events of a
    timed one.

    Raises RuntimeError if it cannot be captured.
    """
    return captured_graph(anew, lambda call: call(), device).replay
