"""Taking the time of calls: nothing but the call stands between two readings."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import torch

L2_FLUSH_BYTES = 256 << 20  # 4 times the largest L2 that we know of (H200: 60 MB), as Triton's own benchmark writes
SM_CLOCK_HZ = 2.0e9  # above the boost clock of every data-centre GPU: a delay in cycles is then never too short
MOST_DELAY_S = 0.02


class Samples(NamedTuple):
    """Milliseconds per call, in order. `wall_ms` is None where the clock is the host's anyway."""

    block_ms: list[float]
    wall_ms: list[float] | None


class Clock(Protocol):
    """Times calls of one device."""

    BLOCK_MS: float
    """A block calls a member until it has spent about this long, so that one slow reading cannot make a block."""

    def sample(self, call: Callable[[], object], calls: int) -> Samples:
        """Run `call` so many times and time each one."""

    def finish(self) -> None:
        """Wait until the device has done all work."""


class HostClock:
    """time.perf_counter_ns round each call."""

    BLOCK_MS = 10.0

    def sample(self, call: Callable[[], object], calls: int) -> Samples:
        now = time.perf_counter_ns
        readings = []
        with no_garbage_collection():
            for _ in range(calls):
                start = now()
                call()
                readings.append(now() - start)
        return Samples([reading / 1e6 for reading in readings], None)

    def finish(self) -> None:
        """Nothing is ever under way."""


class CudaClock:
    """CUDA events round each call, L2 flushed before it, on a stream filled with a delay so that the host is ahead.

    Without the delay the time would hold the host's launch gaps: on an H100 a median of 0.24 ms became 0.09 ms
    (meta-pytorch/torchrec#4665). The delay kernel is finite, so it cannot deadlock as a spinning one can.
    """

    BLOCK_MS = 20.0

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.flush = torch.empty(L2_FLUSH_BYTES // 4, dtype=torch.int32, device=device)

    def sample(self, call: Callable[[], object], calls: int) -> Samples:
        with no_garbage_collection():
            wall_ms = [self._wall_ms(call) for _ in range(min(calls, 10))]
            delay = self._delay_cycles(call)
            events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
            for start, end in events:
                self.flush.zero_()
                torch.cuda._sleep(delay)
                start.record()
                call()
                end.record()
                end.synchronize()
        return Samples([start.elapsed_time(end) for start, end in events], wall_ms)

    def finish(self) -> None:
        torch.cuda.synchronize(self.device)

    def _wall_ms(self, call: Callable[[], object]) -> float:
        self.finish()
        start = time.perf_counter_ns()
        call()
        self.finish()
        return (time.perf_counter_ns() - start) / 1e6

    def _delay_cycles(self, call: Callable[[], object]) -> int:
        """Half as long again as the host needs to launch the call."""
        self.finish()
        start = time.perf_counter()
        call()
        launch_s = time.perf_counter() - start
        self.finish()
        return int(min(1.5 * launch_s, MOST_DELAY_S) * SM_CLOCK_HZ)


def clock_for(device: torch.device) -> Clock:
    return CudaClock(device) if device.type == "cuda" else HostClock()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A collection in the middle of a call would be timed as part of it. None is forced before: it takes longer than a block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
