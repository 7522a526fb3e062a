"""The share of a layer's time in merging heads and output projection, over N.

The parts and the whole layer are timed in the same blocks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear

from ...impls import load
from ...impls.backend import make_inputs
from ...impls.layer import make_weights, merge_heads
from ...impls.problem import Problem
from ..measure.clock import Timer, clock_for
from ..measure.conditions import conditions_for, contended, count_flagged
from ..rows.findings import OutputShare
from ..stats.intervals import Samples, ratio_interval
from ._repeats import interval_fields

QUESTION = "What share of a layer's time do joining the heads and the output projection take?"
PARTS = {"process": (1, 2, 3, 4, 5)}
PART_S = 6.0
BACKENDS = ("naive", "fused", "sdpa")
LENGTHS = {"cpu": (128, 512, 1024), "cuda": (512, 2048, 8192)}
D_MODEL, HEADS = 256, 4
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


def run(
    problem: Problem, device: torch.device, seed: int, *, process: int
) -> Iterator[OutputShare]:
    for seq_len in LENGTHS[device.type]:
        layer = Problem(
            batch=1,
            seq_len=seq_len,
            d_model=D_MODEL,
            heads=HEADS,
            dtype=problem.dtype,
            scope="layer",
        )
        for name in BACKENDS:
            with torch.no_grad():
                found = timed(_calls(name, layer, device, seed), device)
            whole, merging, projecting = found.samples
            pairs = zip(merging[0], projecting[0], strict=True)
            both = [[[a + b for a, b in zip(*blocks, strict=True)] for blocks in pairs]]
            yield OutputShare(
                backend=name,
                seq_len=seq_len,
                d_model=D_MODEL,
                heads=HEADS,
                process=process,
                **interval_fields("share", ratio_interval(both, whole), "ratio"),
                **interval_fields("join", ratio_interval(merging, whole), "ratio"),
                **found.conditions,
            )


def _calls(
    name: str, layer: Problem, device: torch.device, seed: int
) -> tuple[Callable[[], object], ...]:
    """The whole layer; merging the heads of its core's output; W_O of the merged heads."""
    backend, weights = load(name), make_weights(layer, device, seed)
    core = replace(layer, scope="core")
    whole = backend.prepare(layer, make_inputs(layer, device, seed), weights)
    output = backend.prepare(core, make_inputs(core, device, seed), None)()
    merged = merge_heads(output)
    return whole, lambda: merge_heads(output), lambda: linear(merged, weights.w_o, weights.b_o)


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
