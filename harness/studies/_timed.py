"""Times of calls in a study, interleaved in blocks as those of cases are."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import torch

from ..measure.clock import Timer, clock_for
from ..measure.conditions import conditions_for, contended, count_flagged
from ..stats.intervals import Samples

BLOCKS, BLOCK_MS, MOST_CALLS = 4, 8.0, 50  # of a process


class Timed(NamedTuple):
    """Samples of each call, and during how many of the blocks other work wanted the same cores.

    `contended_blocks`: None where the kernel does not say.
    """

    samples: list[Samples]
    contended_blocks: int | None
    blocks: int = BLOCKS

    @property
    def conditions(self) -> dict[str, Any]:
        """For the finding, named as in a row of latencies."""
        return {"contended_blocks": self.contended_blocks, "blocks": self.blocks}


def timed(calls: tuple[Callable[[], object], ...], device: torch.device) -> Timed:
    """Each call, interleaved: each block makes every call equally often."""
    clock = clock_for(device)
    timers: list[Timer] = []
    longest_ms = 0.0
    for call in calls:
        call()
        clock.finish()
        start = perf_counter()
        call()
        clock.finish()
        call_ms = (perf_counter() - start) * 1e3
        longest_ms = max(longest_ms, call_ms)
        timers.append(clock.timer(call, call_ms))
    times = min(MOST_CALLS, max(1, int(BLOCK_MS / max(longest_ms, 1e-3))))
    watch, flags, blocks = conditions_for(device), [], []
    for _ in range(BLOCKS):
        watch.before()
        blocks.append([timer.sample(times).block_ms for timer in timers])
        flags.append(contended(watch.after()))
    return Timed(
        samples=[[[block[number] for block in blocks]] for number in range(len(calls))],
        contended_blocks=count_flagged(flags),
    )
