"""What more threads save: all heads at once, a loop over heads and a recurrent layer, each with one
thread and with all, timed in the same blocks. On a CPU: how a GPU is used, its counters say.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import torch

from ...impls import load
from ...impls.backend import make_inputs
from ...impls.layer import make_weights
from ...impls.problem import Problem
from ..rows.findings import ThreadGain
from ..stats.intervals import Samples, ratio_interval
from ._repeats import interval_fields
from .output_share import timed

QUESTION = "What do all heads at once, a loop over heads and a recurrent layer gain by threads?"
AT_ONCE = "fused"
PARTS = {"process": (1, 2, 3, 4, 5)}
PART_S = 4.0
BACKENDS = (AT_ONCE, "naive", "rnn")
LENGTHS, D_MODEL, HEADS = (64, 512), 256, 8


def run(problem: Problem, device: torch.device, seed: int, *, process: int) -> Iterator[ThreadGain]:
    """Nothing where there is one thread."""
    threads = torch.get_num_threads()
    for seq_len in LENGTHS if device.type == "cpu" and threads > 1 else ():
        layer = Problem(
            batch=1,
            seq_len=seq_len,
            d_model=D_MODEL,
            heads=HEADS,
            dtype=problem.dtype,
            scope="layer",
        )
        calls = [
            partial(_call_with, count, call)
            for call in _calls(layer, device, seed)
            for count in (1, threads)
        ]
        try:
            with torch.no_grad():
                found = timed((*calls,), device)
        finally:
            torch.set_num_threads(threads)
        pairs = zip(found.samples[::2], found.samples[1::2], strict=True)
        times = dict(zip(BACKENDS, pairs, strict=True))
        first, first_all = times[AT_ONCE]
        for backend, (one, every) in times.items():
            behind = ratio_interval(_products(first, every), _products(first_all, one))
            yield ThreadGain(
                backend=backend,
                seq_len=seq_len,
                d_model=D_MODEL,
                heads=HEADS,
                dtype=problem.dtype,
                threads=threads,
                process=process,
                **interval_fields("gain", ratio_interval(one, every), "ratio"),
                **interval_fields("behind", behind, "ratio"),
                **found.conditions,
            )


def _calls(layer: Problem, device: torch.device, seed: int) -> list[Callable[[], object]]:
    inputs, weights = make_inputs(layer, device, seed), make_weights(layer, device, seed)
    return [load(name).prepare(layer, inputs, weights) for name in BACKENDS]


def _call_with(threads: int, call: Callable[[], object]) -> None:
    torch.set_num_threads(threads)
    call()


def _products(one: Samples, other: Samples) -> Samples:
    """Of the times of the same blocks of one process."""
    return [[[median(a) * median(b)] for a, b in zip(one[0], other[0], strict=True)]]
