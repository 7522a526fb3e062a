"""Keeps a device at the same work for some seconds, so that counters which are averages over time
have one thing to average over.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from math import ceil
from typing import Literal

import torch

# of work before the window: counters that are averages of the last moments hold nothing else then
LEAD_S = 0.3
STEP_S = 1e-3
"""Work between two looks at the device. Shorter calls are launched several at a time: an event
after each would be work of its own.
"""
FLIGHT_S = 0.05
"""Work that is launched ahead, so that the device stays at it while the host reads the counters."""
MOST_STEPS = 64

Way = Literal["eager", "graph"]
Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What was done between entering and leaving the watches."""

    window_s: float
    calls: int


def steady(
    call: Call,
    call_ms: float,
    window_s: float,
    watches: list[AbstractContextManager[object]],
    device: torch.device,
) -> Stretch:
    """Repeat a call for at least `window_s` and at least once, with the watches open. The work goes
    on for a little before and after.
    """
    return (_cuda if device.type == "cuda" else _cpu)(call, call_ms, window_s, watches, device)


def _cpu(
    call: Call,
    call_ms: float,
    window_s: float,
    watches: list[AbstractContextManager[object]],
    device: torch.device,
) -> Stretch:
    calls = 0
    with ExitStack() as open_watches:
        for watch in watches:
            open_watches.enter_context(watch)
        start = time.perf_counter()
        while calls == 0 or time.perf_counter() - start < window_s:
            call()
            calls += 1
        spent_s = time.perf_counter() - start
    return Stretch(window_s=spent_s, calls=calls)


def _cuda(
    call: Call,
    call_ms: float,
    window_s: float,
    watches: list[AbstractContextManager[object]],
    device: torch.device,
) -> Stretch:
    """Windows begin and end just when a step ends on the device, with further steps launched: their
    calls are counted exactly.
    """
    queue = _Queue(call, call_ms, device)
    queue.run(LEAD_S)
    with ExitStack() as open_watches:
        before = queue.step()
        start = time.perf_counter()
        for watch in watches:
            open_watches.enter_context(watch)
        after = queue.run(window_s)
        spent_s = time.perf_counter() - start
    torch.cuda.synchronize(device)
    return Stretch(window_s=spent_s, calls=after - before)


class _Queue:
    """Steps of calls that are launched ahead of the device, never by more than some."""

    def __init__(self, call: Call, call_ms: float, device: torch.device) -> None:
        self.call = call
        self.per_step = max(1, ceil(STEP_S / max(call_ms / 1e3, 1e-6)))
        self.ahead = max(
            2, min(MOST_STEPS, ceil(FLIGHT_S / max(call_ms / 1e3 * self.per_step, 1e-6)))
        )
        self.events: deque[torch.cuda.Event] = deque()
        self.done = 0

    def step(self) -> int:
        """Launch steps until enough are under way, and wait for the oldest. Returns how many calls
        the device has done in all.
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
        """Steps for at least so long, and at least one."""
        start = time.perf_counter()
        done = self.step()
        while time.perf_counter() - start < seconds:
            done = self.step()
        return done


class Replayed:
    """A call as a CUDA graph to repeat, without the flush and events of a timed one. Raises
    RuntimeError where it cannot be captured.
    """

    def __init__(self, call: Call, device: torch.device) -> None:
        stream, here = torch.cuda.Stream(device), torch.cuda.current_stream(device)
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            call()  # libraries allocate a workspace per stream, and must not do so while capturing
        here.wait_stream(stream)
        torch.cuda.synchronize(device)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            call()

    def __call__(self) -> None:
        self.graph.replay()
