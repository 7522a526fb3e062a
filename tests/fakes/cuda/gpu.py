"""The device: streams that work in the order of their launches, events, graphs, and time."""

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .memory import Allocator
from .time import Clock, HandClock

CAPTURING = "CUDA error: operation not permitted when stream is capturing"
INVALIDATED = "CUDA error: operation failed due to a previous error during capture"
NOT_READY = "CUDA error: device not ready"
HELD = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
SHORTEST_S = 2e-6  # of a kernel that does nothing
DEVICE_INDEX, DEVICE_TYPE = 0, 1  # of c10::DeviceType: 1 is CUDA


@dataclass(slots=True)
class Timeline:
    """A stream as the device sees it. `free_s`: when all that was launched has ended."""

    number: int
    free_s: float = 0.0


@dataclass(slots=True)
class Capture:
    """What a graph records: `nodes` take time, `values` compute. `broken`: something ends it."""

    timeline: Timeline
    nodes: list[Callable[[Timeline], None]] = field(default_factory=list)
    values: list[Callable[[], object]] = field(default_factory=list)
    broken: bool = False


class FakeGpu:
    """One GPU. `kernel_s`: how long kernels take, by name; others take `other_s`.

    The host needs `launch_s` for each launch and `event_s` to record an event. `launched`: names of
    kernels, in order. `broken`: a message with which every later call of CUDA fails, as after an
    illegal address. `drawing`: what torch's own generator of random numbers is marked for, "eager"
    calls or the "captured" ones.
    `workspace_bytes`: what a matrix product takes, once for each stream, and keeps.
    `exclusive`: a file that the process with the only context holds, in the mode "exclusive
    process".
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        total_bytes: int = 80 << 30,
        capability: tuple[int, int] = (9, 0),
        sm_clock_khz: int = 1_980_000,
        uuid: str = "11111111-2222-3333-4444-555555555555",
    ) -> None:
        self.clock: Clock = HandClock() if clock is None else clock
        self.capability, self.sm_clock_khz, self.uuid = capability, sm_clock_khz, uuid
        self.name = "NVIDIA H100 80GB HBM3"
        self.kernel_s: dict[str, float] = {}
        self.other_s, self.launch_s, self.event_s = 10e-6, 5e-6, 0.0
        self.launched: list[str] = []
        self.broken = ""
        self.drawing = "eager"
        self.workspace_bytes = 0
        self.exclusive: Path | None = None
        self._context: tuple[int, Any] | None = None  # of which process, and its hold
        self.memory = Allocator(total_bytes)
        self.timelines = [Timeline(0)]
        self.current = self.timelines[0]
        self.capture: Capture | None = None

    # ---- launching -------------------------------------------------------------------------------

    def launch(
        self, name: str, seconds: float | None = None, again: Callable[[], object] | None = None
    ) -> None:
        """A kernel on the current stream; `again`: what a graph's replay computes."""
        self.check()
        self.clock.pass_s(self.launch_s)
        took_s = self.kernel_s.get(name, self.other_s) if seconds is None else seconds
        if self.capture is not None:
            self._captured(name, took_s, again)
        else:
            self._start(self.current, name, took_s)

    def _start(self, timeline: Timeline, name: str, took_s: float) -> None:
        self.launched.append(name)
        timeline.free_s = max(timeline.free_s, self.clock.now()) + took_s

    def _captured(self, name: str, took_s: float, again: Callable[[], object] | None) -> None:
        assert self.capture is not None
        if self.current is not self.capture.timeline:
            self.capture.broken = True  # as the default stream, which would have to wait for it
            raise RuntimeError(INVALIDATED)

        self.capture.nodes.append(lambda timeline: self._start(timeline, name, took_s))
        if again is not None:
            self.capture.values.append(again)

    def check(self) -> None:
        self.open_context()
        if self.broken:
            raise RuntimeError(self.broken)

    def open_context(self) -> None:
        """As the first use of the GPU in a process does."""
        if self.exclusive is None or (self._context and self._context[0] == os.getpid()):
            return
        file = self.exclusive.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise RuntimeError(HELD) from None
        self._context = os.getpid(), file

    def close_context(self) -> None:
        """As the end of the process does."""
        if self._context is not None:
            self._context[1].close()
            self._context = None

    # ---- waiting ---------------------------------------------------------------------------------

    def synchronize(self) -> None:
        self.wait_until(max(timeline.free_s for timeline in self.timelines))

    def wait_until(self, end_s: float) -> None:
        """The host waits, which it may not while a stream is captured."""
        self.check()
        if self.capture is not None:
            self.capture.broken = True
            raise RuntimeError(CAPTURING)
        self.clock.wait_until(end_s)

    def sleep(self, cycles: int) -> None:
        if not isinstance(cycles, int):
            raise TypeError(f"_sleep(): cycles must be int, not {type(cycles).__name__}")
        seconds = cycles / (self.sm_clock_khz * 1e3)
        self.launch("spin", max(seconds, SHORTEST_S))

    # ---- streams and graphs ----------------------------------------------------------------------

    def new_timeline(self) -> Timeline:
        self.timelines.append(Timeline(len(self.timelines)))
        return self.timelines[-1]

    def begin_capture(self) -> None:
        if self.current.number == 0:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        if self.capture is not None:
            raise RuntimeError(CAPTURING)
        self.capture = Capture(self.current)

    def end_capture(self) -> Capture:
        capture, self.capture = self.capture, None
        assert capture is not None
        if self.current is not capture.timeline:
            raise RuntimeError("Capture must end on the same stream it began on.")
        if capture.broken:
            raise RuntimeError(INVALIDATED)
        return capture

    def properties(self) -> Any:
        return Properties(
            name=self.name,
            major=self.capability[0],
            minor=self.capability[1],
            multi_processor_count=132,
            total_memory=self.memory.total_bytes,
            clock_rate=self.sm_clock_khz,
            uuid=self.uuid,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Those of torch._C._CudaDeviceProperties that we read."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    clock_rate: int
    uuid: str


def stream_class(gpu: FakeGpu) -> type:
    """torch.cuda.Stream of this GPU."""

    class Stream:
        device_index, device_type = DEVICE_INDEX, DEVICE_TYPE
        device = torch.device("cuda", DEVICE_INDEX)

        def __init__(
            self,
            device: Any = None,
            priority: int = 0,
            *,
            stream_id: int | None = None,
            device_index: int | None = None,
            device_type: int | None = None,
        ) -> None:
            if isinstance(device, torch.device) and device.type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {device}")
            known = gpu.timelines[stream_id] if stream_id is not None else gpu.new_timeline()
            self.timeline, self.stream_id = known, known.number

        def record_event(self, event: Any = None) -> Any:
            event = event or torch.cuda.Event()
            event.record(self)
            return event

        def wait_event(self, event: Any) -> None:
            event.wait(self)

        def wait_stream(self, stream: Any) -> None:
            self.wait_event(stream.record_event())

        def synchronize(self) -> None:
            gpu.wait_until(self.timeline.free_s)

        def query(self) -> bool:
            return gpu.clock.now() >= self.timeline.free_s

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Stream) and other.timeline is self.timeline

        def __hash__(self) -> int:
            return hash(self.stream_id)

    return Stream


def event_class(gpu: FakeGpu) -> type:
    """torch.cuda.Event of this GPU."""

    class Event:
        def __init__(
            self,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            external: bool = False,
        ) -> None:
            self.enable_timing, self.blocking, self.external = enable_timing, blocking, external
            self.at_s: float | None = None
            self.inside = False  # of a graph only

        def record(self, stream: Any = None) -> None:
            gpu.check()
            gpu.clock.pass_s(gpu.event_s)
            timeline = gpu.current if stream is None else stream.timeline
            if gpu.capture is not None and timeline is gpu.capture.timeline:
                self.inside = not self.external
                if self.external:
                    gpu.capture.nodes.append(self._reached)
            else:
                self.inside = False
                self._reached(timeline)

        def _reached(self, timeline: Timeline) -> None:
            self.at_s = max(timeline.free_s, gpu.clock.now())

        def wait(self, stream: Any = None) -> None:
            timeline = gpu.current if stream is None else stream.timeline
            if self.at_s is not None:
                timeline.free_s = max(timeline.free_s, self.at_s)

        def query(self) -> bool:
            self._check_outside()
            return self.at_s is None or gpu.clock.now() >= self.at_s

        def synchronize(self) -> None:
            self._check_outside()
            if self.at_s is not None:
                gpu.wait_until(self.at_s)

        def elapsed_time(self, end: "Event") -> float:
            if not (self.enable_timing and end.enable_timing):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if self.at_s is None or end.at_s is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if not (self.query() and end.query()):
                raise RuntimeError(NOT_READY)
            return (end.at_s - self.at_s) * 1e3

        def _check_outside(self) -> None:
            if self.inside:
                raise RuntimeError("CUDA error: invalid argument")  # recorded while capturing

    return Event


def graph_class(gpu: FakeGpu, new_pool: Callable[[], Any]) -> type:
    """torch.cuda.CUDAGraph of this GPU."""

    class CUDAGraph:
        def __init__(self, keep_graph: bool = False) -> None:
            self.captured: Capture | None = None
            self.held: list[Any] = []

        def capture_begin(
            self,
            pool: Any = None,
            capture_error_mode: str = "global",
            check_input_liveness: bool = False,
        ) -> None:
            self.pool = pool or new_pool()
            gpu.memory.begin_pool(self.pool, self.held)
            gpu.drawing = "captured"
            gpu.begin_capture()

        def capture_end(self) -> None:
            gpu.memory.holder = None
            self.captured = gpu.end_capture()  # raises before the rest, as in torch 2.11
            gpu.memory.end_pool(self.pool)
            gpu.drawing = "eager"

        def replay(self) -> None:
            if self.captured is None:
                raise RuntimeError("Called CUDAGraph::replay without a successful capture.")
            gpu.check()
            gpu.clock.pass_s(gpu.launch_s)
            for node in self.captured.nodes:
                node(gpu.current)
            for compute in self.captured.values:
                compute()

    return CUDAGraph
