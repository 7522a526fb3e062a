"""What joining the heads and the output projection take of a layer's time, over N: timed side by
side with the whole layer.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
from torch.nn.functional import linear

from ...impls import load
from ...impls.backend import make_inputs
from ...impls.layer import make_weights, merge_heads
from ...impls.problem import Problem
from ..measure.clock import Timer, clock_for
from ..stats import Samples, ratio_interval

QUESTION = "What share of a layer's time do joining the heads and the output projection take?"
BACKENDS = ("naive", "fused", "sdpa")
LENGTHS = {"cpu": (128, 512, 1024), "cuda": (512, 2048, 8192)}
D_MODEL, HEADS = 256, 4
BLOCKS, BLOCK_MS, MOST_CALLS = 8, 8.0, 50


def run(problem: Problem, device: torch.device, seed: int) -> Iterator[dict[str, Any]]:
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
                whole, joining, projecting = timed(_calls(name, layer, device, seed), device)
            both = [
                [
                    [a + b for a, b in zip(*pair, strict=True)]
                    for pair in zip(joining[0], projecting[0], strict=True)
                ]
            ]
            share, copy = ratio_interval(both, whole), ratio_interval(joining, whole)
            yield {
                "backend": name,
                "seq_len": seq_len,
                "d_model": D_MODEL,
                "heads": HEADS,
                "share_ratio": share.value,
                "share_low_ratio": share.low,
                "share_high_ratio": share.high,
                "join_ratio": copy.value,
                "join_low_ratio": copy.low,
                "join_high_ratio": copy.high,
            }


def _calls(
    name: str, layer: Problem, device: torch.device, seed: int
) -> tuple[Callable[[], object], ...]:
    """The whole layer; joining what its core gives, as that lies in memory; W_O of what was
    joined.
    """
    backend, weights = load(name), make_weights(layer, device, seed)
    core = replace(layer, scope="core")
    whole = backend.prepare(layer, make_inputs(layer, device, seed), weights)
    output = backend.prepare(core, make_inputs(core, device, seed), None)()
    joined = merge_heads(output)
    return whole, lambda: merge_heads(output), lambda: linear(joined, weights.w_o, weights.b_o)


def timed(calls: tuple[Callable[[], object], ...], device: torch.device) -> list[Samples]:
    """Milliseconds, [process][block][call], of calls that take turns: in each block all of them are
    made equally often.
    """
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
    blocks = [[timer.sample(times).block_ms for timer in timers] for _ in range(BLOCKS)]
    return [[[block[number] for block in blocks]] for number in range(len(calls))]
