"""How fast this machine is now, in a fraction of a second: enough to say how long a run will take.

No number of a report: calibration measures peaks, with repeats and intervals.
"""

import mmap
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter

import torch

from ...impls.backend import TORCH_DTYPE

SMALL = 64  # rows and columns of a product that takes as long as an operation takes at least
PRODUCTS = {"cpu": (256, 512), "cuda": (1024, 8192)}
SCORES = {"cpu": (512, 1024), "cuda": (8192, 8192)}  # on a CPU they stay in its caches
MEMORY_BYTES = {"cpu": 32 << 20, "cuda": 1 << 30}
LONG_S = 0.005  # a product that takes longer tells the rate; a larger one would take too long
LEAST_SHARE = 0.25  # of a time that is work: the difference of two times can be noise
ENOUGH_S = 0.02  # of calls of one kind
FEWEST_CALLS, MOST_CALLS = 2, 20

Rates = dict[str, float | dict[str, float]]


def pace(device: torch.device, dtypes: Iterable[str]) -> Rates:
    """`flops_per_s` of a matrix product by dtype, `scores_per_s` of a softmax, `bytes_per_s`, and
    `step_s`, what any operation takes: on a busy machine, waiting for the slowest thread.

    JSON-ready. A dtype that this device cannot multiply is left out. Leaves no trace in the heap:
    what is freed is no larger than what a worker frees when it starts.
    """
    step_s = _seconds(_product(device, torch.float32, SMALL), device)
    flops_per_s = {}
    for dtype in dtypes:
        try:
            flops_per_s[dtype] = _flops_per_s(device, TORCH_DTYPE[dtype], step_s)  # type: ignore[index]
        except RuntimeError:  # no such product here, or no memory: its cases say why
            continue
    rows, columns = SCORES[device.type]
    softmax_s = _seconds(
        partial(torch.softmax, torch.randn(rows, columns, device=device), -1), device
    )
    found: Rates = {"flops_per_s": flops_per_s, "bytes_per_s": _bytes_per_s(device)}
    found |= {"scores_per_s": rows * columns / _work_s(softmax_s, step_s), "step_s": step_s}
    if device.type == "cuda":
        torch.cuda.empty_cache()  # cases find the memory as if nothing had been here
    return found


def _flops_per_s(device: torch.device, dtype: torch.dtype, step_s: float) -> float:
    """Of the largest product that takes a moment."""
    rate = 0.0
    for size in PRODUCTS[device.type]:
        seconds = _seconds(_product(device, dtype, size), device)
        rate = 2.0 * size**3 / _work_s(seconds, step_s)
        if seconds > step_s + LONG_S:
            break
    return rate


def _product(device: torch.device, dtype: torch.dtype, size: int) -> Callable[[], object]:
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b


def _work_s(seconds: float, step_s: float) -> float:
    """Without the moment that it would take anyway, if that is what it took."""
    return max(seconds - step_s, LEAST_SHARE * seconds) if seconds > step_s else seconds


def _bytes_per_s(device: torch.device) -> float:
    """Bytes read and written per second, beyond most caches."""
    size = MEMORY_BYTES[device.type]
    if device.type == "cuda":
        add = torch.zeros(size // 4, device=device).add_
    else:  # from the kernel: the heap learns nothing from it
        add = torch.frombuffer(mmap.mmap(-1, size), dtype=torch.float32).add_
    return 2 * size / _seconds(partial(add, 1.0), device)


def _seconds(call: Callable[[], object], device: torch.device) -> float:
    """Of the fastest call; the first one starts libraries and does not count."""

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    call()
    finish()
    spent: list[float] = []
    while len(spent) < FEWEST_CALLS or (len(spent) < MOST_CALLS and sum(spent) < ENOUGH_S):
        begun = perf_counter()
        call()
        finish()
        spent.append(perf_counter() - begun)
    return min(spent)
