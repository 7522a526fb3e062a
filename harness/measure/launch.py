"""What launching alone costs: the shortest call of a device, and the launch of a given call."""

from functools import partial
from statistics import median
from time import perf_counter

import torch

from .clock import GRAPH_BELOW_MS, Clock
from .graph_capture import Call

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
