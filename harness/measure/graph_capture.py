"""Capture a call as a CUDA graph, a backward pass too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import torch

Call = Callable[[], object]


class Captured(NamedTuple):
    """`call` holds what the graph reads, such as what a forward pass has saved for the backward."""

    graph: torch.cuda.CUDAGraph
    call: Call
    stream: torch.cuda.Stream

    def replay(self) -> None:
        self.graph.replay()


def captured_graph(
    anew: Callable[[], Call], captured: Callable[[Call], object], device: torch.device
) -> Captured:
    """A CUDA graph of `captured`, which gets the call that `anew` makes on the stream to capture.

    Raises RuntimeError if it cannot be captured: calls that synchronize, or that allocate outside
    torch, cannot.
    """
    stream, here = capture_stream(device), torch.cuda.current_stream(device)
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        call = anew()
        call()  # libraries allocate a workspace per stream, and must not do so while capturing
    here.wait_stream(stream)
    torch.cuda.synchronize(device)
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        with _leaves_on_the_captured_stream(), torch.cuda.graph(graph, pool, stream=stream):
            captured(call)
    except Exception:
        torch.cuda.set_stream(here)  # torch leaves the other one current
        end_failed_capture(pool, stream)
        raise
    finally:
        torch.cuda.set_stream(here)
    return Captured(graph, call, stream)


def overrides_streams() -> bool:
    """Whether torch can capture a backward pass to leaves that have been used on another stream.

    Autograd has one node for each leaf, made on the stream where the first graph that ends in it
    was. It lives with that graph, and a capture would wait for its stream (pytorch#180090).
    """
    return hasattr(torch.autograd.graph, "set_override_stale_capture_stream")  # from 2.13 on


@contextmanager
def _leaves_on_the_captured_stream() -> Iterator[None]:
    if not overrides_streams():
        yield
        return
    before = torch._C._override_stale_capture_stream()
    torch.autograd.graph.set_override_stale_capture_stream(True)
    try:
        yield
    finally:
        torch.autograd.graph.set_override_stale_capture_stream(before)


def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which torch captures if it is not given one, for every graph.

    cuBLAS keeps a workspace for each stream that it has worked on, 32 MiB on Hopper, which new
    streams would take from the memory budget of the cases that follow.
    """
    if torch.cuda.graph.default_capture_stream is None:
        torch.cuda.graph.default_capture_stream = torch.cuda.Stream(device)
    return torch.cuda.graph.default_capture_stream


def end_failed_capture(pool: tuple[int, int], stream: torch.cuda.Stream) -> None:
    """End what torch leaves open if CUDA refuses to end a capture (CUDAGraph::capture_end).

    While the graph's pool is open, the allocator gives back no cache when memory runs out. And
    torch's own generator refuses to draw random numbers, until another capture ends well.
    """
    with suppress(RuntimeError):  # it is not open: the capture has failed before or after it was
        torch._C._cuda_endAllocateToPool(stream.device_index, pool)
        torch._C._cuda_releasePool(stream.device_index, pool)
    with suppress(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
        torch.zeros(1, device=stream.device)


def not_captured(error: RuntimeError) -> str:
    """Why there is no graph, as a reason in a row.

    The first error says it: ending the capture fails too, "due to a previous error during capture".
    """
    first = error.__context__ or error
    return f"cannot be captured: {(str(first).strip() or repr(first)).splitlines()[0][:200]}"
