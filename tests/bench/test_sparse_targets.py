"""Time and bytes of sparse and linear attention over N on the CPU, against their targets: linear in
N, and no slower than fused at N = 8k.

About 2 minutes. `make bench` runs these. Bytes are exact; an exponent of time means something on an
idle machine only.
"""

from functools import cache
from math import log
from statistics import median
from time import perf_counter

import pytest
import torch

from attnbench import impls
from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.harness.measure.warm_heap import WarmHeap
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
LENGTHS = (2048, 4096, 8192, 16384)
MASKS = {"sparse_local": "local", "sparse_random": "blocks", "sparse_strided": "strided"}
LINEAR = ("sparse_local", "sparse_random", "linformer", "performer")
MOST_EXPONENT = 1.15
MOST_STRIDED_EXPONENT = 1.65  # N^1.5 for a stride of sqrt(N)
AT = 8192
CALLS = 5


def problem(backend: str, n: int, mask: str | None = None) -> Problem:
    return Problem(
        batch=1, seq_len=n, d_model=256, heads=4, mask=mask or MASKS.get(backend, "none")
    )  # type: ignore[arg-type]


@cache
def time_ms(backend: str, n: int, mask: str | None = None) -> float:
    """Median of a few calls with a heap that keeps its memory, after one that warms it up."""
    shape = problem(backend, n, mask)
    subject = prepare_call(shape, impls.load(backend), make_tensors(shape, CPU, 0), None)
    heap = WarmHeap()
    heap.keep()
    try:
        with subject.in_force():
            subject.call()
            readings = []
            for _ in range(CALLS):
                start = perf_counter()
                subject.call()
                readings.append((perf_counter() - start) * 1e3)
    finally:
        heap.give_back()
    return median(readings)


def exponent(values: list[float]) -> float:
    """The slope of a straight line through the logarithms, over LENGTHS."""
    xs, ys = [log(n) for n in LENGTHS], [log(value) for value in values]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - middle_x) ** 2 for x in xs
    )


@pytest.mark.parametrize("backend", [*LINEAR, "sparse_strided"])
def test_time_grows_with_n(benchmark, backend):
    times = benchmark.pedantic(lambda: [time_ms(backend, n) for n in LENGTHS], rounds=1)
    benchmark.extra_info.update(times_ms=times, exponent=exponent(times))
    assert exponent(times) <= (
        MOST_STRIDED_EXPONENT if backend == "sparse_strided" else MOST_EXPONENT
    )


@pytest.mark.parametrize("backend", [*LINEAR, "sparse_strided"])
def test_none_is_slower_than_fused_on_the_same_problem_at_8k(benchmark, backend):
    mask = MASKS.get(backend, "none")
    ours, theirs = benchmark.pedantic(
        lambda: (time_ms(backend, AT), time_ms("fused", AT, mask)), rounds=1
    )
    benchmark.extra_info.update(ours_ms=ours, fused_ms=theirs, ratio=ours / theirs)
    assert ours <= theirs
