"""How fast this machine is now, in a fraction of a second: enough to say how long a call will take.

No number of a report: calibration measures peaks, with repeats and intervals.
"""

import mmap
from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE

SIZE = {"cpu": 256, "cuda": 1024}  # rows and columns of a matrix
FEW, MANY = 2, 64  # products at once: the first shows whether a dtype is slow here
SLOW_S, SLOW_STEPS = 0.005, 3.0  # few products that take longer, also in steps, are slow
LEAST_SHARE = 0.25  # of a time that is work: the difference of two times can be noise
ENOUGH_S = 0.02  # of calls of one kind
FEWEST_CALLS, MOST_CALLS = 2, 20

Rates = dict[str, Any]


def pace(device: torch.device, dtypes: Iterable[str]) -> Rates:
    """`flops_per_s` of matrix products by dtype, fp32 always; and `step_s`, what any
    operation takes: on a busy machine, waiting for the slowest thread.

    JSON-ready. A dtype that this device cannot multiply is left out.
    """
    step = torch.zeros(64, 64, device=device)
    step_s = _seconds(partial(torch.matmul, step, step), device)
    flops_per_s = {}
    for dtype in dict.fromkeys(("fp32", *dtypes)):
        try:
            flops_per_s[dtype] = _flops_per_s(device, TORCH_DTYPE[dtype], step_s)  # type: ignore[index]
        except RuntimeError:  # no such product here, or no memory: its cases say why
            continue
    del step
    if device.type == "cuda":
        torch.cuda.empty_cache()  # cases find the memory as if nothing had been here
    return {"flops_per_s": flops_per_s, "step_s": step_s}


def _flops_per_s(device: torch.device, dtype: torch.dtype, step_s: float) -> float:
    """Of many products at once, of few if those take long."""
    size, rate = SIZE[device.type], 0.0
    for count in (FEW, MANY):
        a, b, out = (_numbers((count, size, size), dtype, device) for _ in range(3))
        seconds = _seconds(partial(torch.bmm, a, b, out=out), device)
        rate = 2.0 * count * size**3 / _work_s(seconds, step_s)
        if seconds > SLOW_S + SLOW_STEPS * step_s:
            break
    return rate


def _numbers(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Ones. On a CPU from the kernel's memory, so that the heap learns nothing from them: glibc
    changes when it gives memory back with each larger block that is freed.
    """
    if device.type != "cpu":
        return torch.ones(shape, dtype=dtype, device=device)
    numbers = torch.Size(shape).numel()
    pages = mmap.mmap(-1, numbers * dtype.itemsize)
    return torch.frombuffer(pages, dtype=dtype).view(shape).fill_(1.0)


def _work_s(seconds: float, step_s: float) -> float:
    """Without the moment that it would take anyway, if that is what it took."""
    return max(seconds - step_s, LEAST_SHARE * seconds) if seconds > step_s else seconds


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
