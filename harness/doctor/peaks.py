"""Peak rates of a device as measured, the denominators of utilization.

Measured on large matrix products and on copying memory. Inputs are random: a GPU multiplies zeros
with less power, so at a higher clock. Results are written into given memory, so no call allocates.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import NamedTuple

import torch

from ..measure.clock import Clock, clock_for, nothing
from ..measure.conditions import HostConditions, conditions_for
from ..measure.graph_capture import Call

Make = Callable[[], tuple[float, Call]]
"""Makes inputs; returns the work of one call, in FLOPs or bytes, and the call."""


class Sizes(NamedTuple):
    """The size of the work, and how often it is repeated.

    `blocks`: fewer once `most_s` are over, but at least FEWEST_BLOCKS.
    """

    gemm: int
    copy_bytes: int
    warm_up_s: float = 0.5
    block_s: float = 0.05
    blocks: int = 7
    most_s: float = 4.0


SIZES = {
    # a copy larger than the caches of all but the largest servers
    "cpu": Sizes(gemm=2048, copy_bytes=256 << 20, warm_up_s=0.1),
    "cuda": Sizes(gemm=8192, copy_bytes=1 << 30),  # many times as large as any L2
}
FEWEST_BLOCKS = 3
DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
KINDS = {"cpu": ("fp32", "bf16"), "cuda": tuple(DTYPES)}


class Peak(NamedTuple):
    """A rate: `work` per call, over its time. `block_ms` is [block][call].

    `block_ms` is empty if it was not measured, and `reason` says why. `clock_mhz`: of a GPU, the
    mean meanwhile; its power limit may hold it below that of short calls.
    """

    name: str
    work: float
    block_ms: list[list[float]]
    reason: str = ""
    clock_mhz: float | None = None

    @property
    def best_per_s(self) -> float | None:
        """Of the block with the smallest median: one lucky reading of a clock is no peak."""
        if not self.block_ms:
            return None
        return self.work / (min(median(block) for block in self.block_ms) / 1e3)


def measure(device: torch.device, begins: Callable[[str], object]) -> list[Peak]:
    """Every peak of this kind of device. The names end in their units. `begins` hears of each."""
    sizes = SIZES[device.type]
    meter = clock_for(device), conditions_for(device), sizes
    # bf16 without instructions for it: a call of 2 048 takes 22 s, one of 512 0.2 s
    slow = device.type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX2"
    precision = torch.get_float32_matmul_precision()
    found = []
    try:
        for name in KINDS[device.type]:
            begins(f"measuring peaks: {name} products")
            # "high" allows TF32, the tensor cores' rounding of fp32 products
            torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
            size = sizes.gemm // (4 if slow and name == "bf16" else 1)
            product = partial(gemm, device, DTYPES[name], size)
            found.append(measure_peak(f"gemm_{name}_flops_per_s", product, *meter))
    finally:
        torch.set_float32_matmul_precision(precision)
    begins("measuring peaks: copying")
    copying = partial(copy, device, sizes.copy_bytes)
    return [*found, measure_peak("copy_bytes_per_s", copying, *meter)]


def gemm(device: torch.device, dtype: torch.dtype, size: int) -> tuple[float, Call]:
    """A square matrix product: 2 * M * N * K FLOPs."""
    generator = torch.Generator(device).manual_seed(0)
    a, b = (
        torch.randn(size, size, device=device, generator=generator).to(dtype) for _ in range(2)
    )  # [size, size]
    out = torch.empty_like(a)
    return 2.0 * size**3, lambda: torch.matmul(a, b, out=out)


def copy(device: torch.device, size_bytes: int) -> tuple[float, Call]:
    """A copy: each byte is read once and written once."""
    source = torch.ones(size_bytes // 4, dtype=torch.float32, device=device)  # [size]
    target = torch.zeros_like(source)
    return 2.0 * size_bytes, lambda: target.copy_(source)


def measure_peak(
    name: str, make: Make, clock: Clock, conditions: HostConditions, sizes: Sizes
) -> Peak:
    """Not measured if it does not fit into memory or this device cannot do it."""
    try:
        work, call = make()
        call_s = warm_up(call, clock, sizes.warm_up_s)
        timer = clock.timer(call, call_s * 1e3)
        calls = max(1, round(sizes.block_s / call_s))
        blocks: list[list[float]] = []
        between = conditions.during(nothing)
        conditions.before()
        end = time.monotonic() + sizes.most_s
        while len(blocks) < FEWEST_BLOCKS or (
            len(blocks) < sizes.blocks and time.monotonic() < end
        ):
            blocks.append(timer.sample(calls, between).block_ms)
        clock_mhz = conditions.after().get("sm_clock_mhz")
    except RuntimeError as error:
        return Peak(name, 0.0, [], str(error).strip().partition("\n")[0][:200])
    return Peak(name, work, blocks, clock_mhz=clock_mhz)


def warm_up(call: Call, clock: Clock, seconds: float) -> float:
    """Seconds per call once libraries are loaded, by the first, and clocks have risen."""
    spent: list[float] = []
    while len(spent) < 2 or sum(spent[1:]) < seconds:
        start = time.perf_counter()
        call()
        clock.finish()
        spent.append(time.perf_counter() - start)
    return median(spent[1:])
