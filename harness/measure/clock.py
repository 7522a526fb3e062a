"""Time calls: nothing but the call stands between two readings."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple, Protocol

import torch

from .graph_capture import Call, captured_graph, not_captured
from .output_check import FirstLook

# 4 times the largest L2 that we know of (H200: 60 MB); Triton's own benchmark writes as much
L2_FLUSH_BYTES = 256 << 20
# above the boost clock of most data-centre GPUs, if torch does not tell it: no delay is too short
SM_CLOCK_HZ = 2.0e9
MAX_DELAY_S = 0.02
MAX_OTHER_CALLS = 10  # per block, of every quantity but the primary one
LEFT_OVER_MS, LEFT_OVER_RATIO = 0.05, 0.05
"""A device may be busy for so long, absolute or of the call, after a call's last event: longer than
waiting for an idle device takes here, which is some 10 us, more in a sandbox.
"""
OTHERS_SLACK = 0.25
"""So many times the calling thread's processor time others may take, beyond as much as it each."""
IDLE_WAITS = 9
GRAPH_BELOW_MS = 10.0
"""A longer call is not bound by its launches, and its graph would hold its temporaries."""

# as they were before any backend loaded
now_ns, now_s, processor_ns = time.perf_counter_ns, time.perf_counter, time.process_time_ns
thread_ns = time.thread_time_ns


class Between(Protocol):
    """Called before each call that is timed, never inside."""

    def __call__(self, *, last: bool) -> object:
        """`last`: of the block, whose result is kept."""


def nothing(*, last: bool) -> None:
    """Between calls that may read the same numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Milliseconds per call, in order; None for a quantity that this clock or call does not have.

    `block_ms` is the primary latency. `first_ms`: of the call before it, which finds caches as
    another case left them. `processor_ms`: processor time of a typical call in all threads of this
    process, and `thread_ms` its part in the thread that makes the call; None if others worked
    longer than that one. `late_calls`: calls that began on the GPU before the host had launched all
    of them, so that launch gaps may be in their time. `unjoined_calls`: calls after whose last
    event the GPU still worked, on a stream that is not timed.
    """

    block_ms: list[float]
    wall_block_ms: list[float] | None = None
    hot_block_ms: list[float] | None = None
    graph_block_ms: list[float] | None = None
    first_ms: float | None = None
    processor_ms: float | None = None
    thread_ms: float | None = None
    late_calls: int | None = None
    unjoined_calls: int | None = None
    result: object = None
    looked: FirstLook | None = None

    @property
    def spent_s(self) -> float:
        """The time that sampling took, all quantities together."""
        lists = (self.block_ms, self.wall_block_ms, self.hot_block_ms, self.graph_block_ms)
        return (sum(sum(values) for values in lists if values) + (self.first_ms or 0.0)) / 1e3


# ---- CPU -----------------------------------------------------------------------------------------


class HostClock:
    """time.perf_counter_ns around each call."""

    def timer(
        self, call: Call, call_ms: float, anew: Callable[[], Call] | None = None
    ) -> "HostTimer":
        """Get ready to time a warm call that takes about `call_ms`.

        `anew` makes the same call again, for a graph: a backward pass runs on the stream of its
        forward pass.
        """
        return HostTimer(call)

    def time_ms(self, call: Call) -> float:
        """Of one call, outside of blocks."""
        start = now_ns()
        call()
        return (now_ns() - start) / 1e6

    def finish(self) -> None:
        """Wait until the device has done all work; calls on a CPU are synchronous."""


@dataclass(frozen=True, slots=True)
class HostTimer:
    """Times one call repeatedly.

    `graph_reason`: why there is no CUDA graph; "" if there is one, None if none is wanted.
    """

    call: Call
    graph_reason: None = None

    def sample(self, calls: int, between: Between = nothing, *, first: bool = False) -> Samples:
        """Make that many calls and time each one; with `first` one more before them, apart."""
        now, call = now_ns, self.call
        result: object = None
        readings: list[float] = []
        own_ms: list[float] = []  # processor time of this thread
        all_ms: list[float] = []  # of all threads
        with no_garbage_collection():
            for left in reversed(range(calls + first)):
                result = None  # two results at once would be more memory than the call needs
                between(last=not left)
                all_before, own_before = processor_ns(), thread_ns()
                start = now()
                result = call()
                readings.append((now() - start) / 1e6)
                own_ms.append((thread_ns() - own_before) / 1e6)
                all_ms.append((processor_ns() - all_before) / 1e6)
            looked = FirstLook(result)
        holds = sum(all_ms) <= sum(own_ms) * (torch.get_num_threads() + OTHERS_SLACK)
        return Samples(
            block_ms=readings[first:],
            first_ms=readings[0] if first else None,
            processor_ms=median(all_ms[first:]) if holds else None,
            thread_ms=median(own_ms[first:]) if holds else None,
            result=result,
            looked=looked,
        )


# ---- CUDA ----------------------------------------------------------------------------------------


class CudaClock:
    """Four quantities of the same call, from what the GPU does to what a user waits for.

    - block_ms: CUDA events around one eager call, L2 flushed before it, on a stream filled with a
      delay so that the host is ahead;
    - hot_block_ms: the same without the flush;
    - graph_block_ms: the call captured in a CUDA graph, events inside the graph, L2 flushed: what
      is left if launching costs nothing;
    - wall_block_ms: the host's clock around call and synchronize.

    Without the delay, events would include the host's launch gaps: on an H100 a median of 0.24 ms
    became 0.09 ms (meta-pytorch/torchrec#4665). The delay kernel is finite, so it cannot deadlock
    as a spinning one can.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.sm_clock_hz = boost_clock_hz(device)
        self.flush = torch.empty(L2_FLUSH_BYTES // 4, dtype=torch.int32, device=device)
        self.launch_s = 0.0  # of the last call of time_ms
        self.finish()
        self.idle_wait_ms = median(self.waited_ms() for _ in range(IDLE_WAITS))

    def timer(
        self, call: Call, call_ms: float, anew: Callable[[], Call] | None = None
    ) -> "CudaTimer":
        return CudaTimer(self, call, call_ms, anew or (lambda: call))

    def time_ms(self, call: Call) -> float:
        """As hot_block_ms; the delay is by the launch before."""
        timed = self.between_events(call, self.delay_cycles(self.launch_s))
        self.launch_s = timed.launch_s
        return timed.ms

    def delay_cycles(self, launch_s: float) -> int:
        """Twice as long as the host needs from the first event to behind the second."""
        return int(min(2 * launch_s, MAX_DELAY_S) * self.sm_clock_hz)

    def between_events(
        self,
        call: Call,
        delay: int,
        *,
        flush: bool = False,
    ) -> "Timed":
        """The time between the two events.

        Work on another stream than the current one ends after the second event, which does not wait
        for it. That the device is still busy then shows it.
        """
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if flush:
            self.flush.zero_()
        torch.cuda._sleep(delay)
        begun_s = now_s()
        start.record()
        result = call()
        end.record()
        late = start.query()
        launch_s = now_s() - begun_s
        end.synchronize()
        left_ms = self.waited_ms() - self.idle_wait_ms
        ms = start.elapsed_time(end)
        unjoined = left_ms > LEFT_OVER_MS + LEFT_OVER_RATIO * ms
        return Timed(ms, launch_s, late, unjoined, result)

    def finish(self) -> None:
        torch.cuda.synchronize(self.device)

    def waited_ms(self) -> float:
        """How long the host waits until the device has done all work."""
        begun_s = now_s()
        self.finish()
        return (now_s() - begun_s) * 1e3


class CudaTimer:
    """As HostTimer."""

    def __init__(
        self, clock: CudaClock, call: Call, call_ms: float, anew: Callable[[], Call]
    ) -> None:
        self.clock = clock
        self.call = call
        self.graph: TimedGraph | None = None
        self.graph_reason: str | None = (
            f"a call of more than {GRAPH_BELOW_MS:g} ms is not bound by its launches"
        )
        if call_ms <= GRAPH_BELOW_MS:
            try:
                self.graph, self.graph_reason = TimedGraph(clock, anew), ""
            except RuntimeError as error:
                self.graph_reason = not_captured(error)
                clock.finish()

    def sample(self, calls: int, between: Between = nothing, *, first: bool = False) -> Samples:
        others = min(calls, MAX_OTHER_CALLS)

        def timed(*, flush: bool = False, last: bool = False) -> Timed:
            between(last=last)
            found = self.clock.between_events(self.call, delay, flush=flush)
            return found if last else found._replace(result=None)

        with no_garbage_collection():
            wall_ms = [self._wall_ms(between) for _ in range(others)]
            delay = self._delay_cycles()
            apart = [timed(flush=True) for _ in range(first)]
            cold = [timed(flush=True, last=not left) for left in reversed(range(calls))]
            looked = FirstLook(cold[-1].result)
            hot = [timed() for _ in range(others)]
            graph_ms = [self._replay_ms(between) for _ in range(others)] if self.graph else None
        return Samples(
            block_ms=[one.ms for one in cold],
            wall_block_ms=wall_ms,
            hot_block_ms=[one.ms for one in hot],
            graph_block_ms=graph_ms,
            first_ms=apart[0].ms if apart else None,
            late_calls=sum(one.late for one in cold + hot),
            unjoined_calls=sum(one.unjoined for one in cold + hot),
            result=cold[-1].result,
            looked=looked,
        )

    def _wall_ms(self, between: Between) -> float:
        between(last=False)
        self.clock.finish()
        start = now_ns()
        self.call()
        self.clock.finish()
        return (now_ns() - start) / 1e6

    def _replay_ms(self, between: Between) -> float:
        assert self.graph is not None
        between(last=False)
        return self.graph.replay_ms()

    def _delay_cycles(self) -> int:
        """Read without a delay: a call that synchronizes would wait for it."""
        self.clock.finish()
        return self.clock.delay_cycles(self.clock.between_events(self.call, 0).launch_s)


class Timed(NamedTuple):
    """`launch_s`: of the host, from the first event to behind the second. `late`: the call began
    before it was launched whole. `unjoined`: the device worked after.
    """

    ms: float
    launch_s: float
    late: bool
    unjoined: bool
    result: object


def boost_clock_hz(device: torch.device) -> float:
    """The highest clock of the device's SMs (cudaDevAttrClockRate, in kHz)."""
    khz = getattr(torch.cuda.get_device_properties(device), "clock_rate", None)
    return float(khz) * 1e3 if khz else SM_CLOCK_HZ


class TimedGraph:
    """A CUDA graph of: flush L2, event, call, event. Raises RuntimeError if it cannot be captured.

    The events are external ones, whose times can be read after a replay; the flush is outside of
    them and needs no subtraction.
    """

    def __init__(self, clock: CudaClock, anew: Callable[[], Call]) -> None:
        self.clock = clock
        self.start = torch.cuda.Event(enable_timing=True, external=True)
        self.end = torch.cuda.Event(enable_timing=True, external=True)

        def timed(call: Call) -> None:
            clock.flush.zero_()
            self.start.record()
            call()
            self.end.record()

        self.captured = captured_graph(anew, timed, clock.device)
        self.replay_ms()

    def replay_ms(self) -> float:
        self.captured.replay()
        self.clock.finish()  # waiting for an event of a graph might wait for an earlier replay's
        return float(self.start.elapsed_time(self.end))


Clock = HostClock | CudaClock
Timer = HostTimer | CudaTimer


def clock_for(device: torch.device) -> Clock:
    return CudaClock(device) if device.type == "cuda" else HostClock()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a call would be timed as part of it.

    None is forced before: it takes longer than a block.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# ---- what launching alone costs ------------------------------------------------------------------

BLOCKS, CALLS = 5, 50
LAUNCHES = 5


def shortest_call_ms(clock: Clock, device: torch.device) -> float | None:
    """What a call takes at least that does anything at all; None if it cannot be measured.

    Halfway between a call that does nothing, which is what the clock itself adds, and the smallest
    piece of work: an empty kernel on a GPU, an operation on one number on a CPU. Half of it is the
    margin for a faster clock later. Measure it before any backend is loaded.
    """
    smallest: Call = (
        partial(torch.cuda._sleep, 0) if device.type == "cuda" else torch.zeros(()).neg_
    )
    try:
        nothing_ms, smallest_ms = (_lowest_ms(clock, call) for call in (lambda: None, smallest))
    except RuntimeError:
        return None
    return (nothing_ms + smallest_ms) / 2


def _lowest_ms(clock: Clock, call: Call) -> float:
    """The lowest median of some blocks."""
    timer = clock.timer(call, 2 * GRAPH_BELOW_MS)  # so long that no graph of it is wanted
    timer.sample(CALLS)
    return min(median(timer.sample(CALLS).block_ms) for _ in range(BLOCKS))


def launch_ms(clock: Clock, device: torch.device, call: Call) -> float | None:
    """How long the host is busy with a warm call on an idle GPU; None on a CPU."""
    if device.type != "cuda":
        return None
    readings = []
    for _ in range(LAUNCHES):
        clock.finish()
        start = perf_counter()
        call()
        readings.append((perf_counter() - start) * 1e3)
    clock.finish()
    return min(readings)
