"""What no call can beat: the device's FLOP/s, its bytes/s, and its shortest call.

A latency beyond one of them proves that the work was not done, whatever the correctness check saw.
Every limit is generous on purpose, since it convicts: it must hold for the best kernel on a cool
device, on a machine that was measured while it was busy. A limit that is not known refutes nothing.
Imports no torch: the parent process decides, with what a worker cannot touch.
"""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import median
from typing import Any, NamedTuple

from humanize import metric

from ...impls.problem import Problem
from ...impls.shared.cpu_flags import cpu_flags
from ...impls.shared.mask_counts import least_attention_flops, unmasked_keys, unmasked_queries
from ..cases.costs import feed_forward_flops, minimal_bytes

MEASURED_MARGIN = 2.0
"""Over the measured rate of matrix products: a power limit or other work may have held it back."""
SHEET_MARGIN = 1.1  # over the data sheet's rate: some boards exceed its boost clock by up to 8 %
L2_FACTOR = 16
"""Bandwidth of a GPU's L2 over that of its memory, at most.

2 on an H100, 5 on an A100 and an RTX 4090, 8 on an L4.
"""
CPU_CLOCK_HZ = 6.2e9
"""The highest turbo clock of any x86 core sold (Core i9-14900KS).

Not the machine's own: virtual machines and acpi-cpufreq report the base clock as the highest.
"""
L1_BYTES_PER_CYCLE = 192  # of one core: two loads and one store of 64 bytes (AVX-512)
X86_FLOP_PER_CYCLE = (  # flag of /proc/cpuinfo, FLOP per cycle and core in fp32
    ("avx512f", 64),  # two fused multiply-adds of 16 lanes
    ("fma", 32),  # two of 8 lanes
    ("avx", 16),
    ("sse2", 8),
)
X86_HALF_FLOP_PER_CYCLE = (  # the same in bf16 and fp16; without such a flag as in fp32
    ("amx_bf16", 2048),  # a tile product of 16 x 16 x 32 in 16 cycles
    ("amx_fp16", 2048),
    ("avx512_bf16", 128),
    ("avx512_fp16", 128),
)
ARM_FLOP_PER_CYCLE = (
    ("sve", 64),
    ("asimd", 32),
)  # A64FX: two units of 512 bits; Neoverse: 4 of 128
ARM_HALF_FLOP_PER_CYCLE = (("bf16", 256), ("asimdhp", 128))
TIMED = {
    "block_ms": "",
    "hot_block_ms": " with L2 hot",
    "graph_block_ms": " as a CUDA graph",
}


class Limit(NamedTuple):
    """A rate that nothing on this device exceeds, and where it comes from."""

    per_s: float
    source: str


class Device(NamedTuple):
    """What the limits of a run depend on.

    `peaks`: of calibration, names as in calibration.jsonl; `name`: the driver's name of a GPU.
    """

    kind: str
    name: str | None
    peaks: Mapping[str, float | None] | None


def refutation(
    problem: Problem, row: Mapping[str, Any], device: Device, shortest_call_ms: float | None
) -> str:
    """Why the latencies of a row cannot be those of its problem; "" if nothing speaks against it.

    `row`: its samples and its exactness. The fastest block's median counts. Only exact attention
    has a known amount of work; the shortest call holds for everything that is called.
    """
    for name, how in TIMED.items():
        fastest_ms = _fastest_ms(row.get(name) or ())
        if fastest_ms is None:
            continue
        if row.get("exactness") == "exact" and (why := _too_much(problem, fastest_ms, device)):
            return f"impossible{how}: {why}"
        if name == "block_ms" and shortest_call_ms is not None and fastest_ms < shortest_call_ms:
            least = "an empty kernel" if device.kind == "cuda" else "an operation on one number"
            return (
                f"impossible: a call takes {metric(fastest_ms / 1e3, 's')}; {least} takes more than"
                f" {metric(shortest_call_ms / 1e3, 's')} on this device; it did not do the work"
            )
    return ""


def _fastest_ms(blocks: Iterable[Iterable[list[float]]]) -> float | None:
    medians = [median(block) for process in blocks for block in process if block]
    return min(medians, default=None)


def _too_much(problem: Problem, call_ms: float, device: Device) -> str:
    """Work or bytes beyond the limit, in words; "" if both are possible."""
    rates = (
        (least_flops(problem), flops_limit(problem.dtype, device), "FLOP/s", ""),
        (minimal_bytes(problem), bytes_limit(device), "B/s", " to move inputs and results once"),
    )
    for amount, limit, unit, what in rates:
        if limit is not None and amount > limit.per_s * call_ms / 1e3:
            rate = f"{metric(amount / call_ms * 1e3, unit)}{what}" if call_ms > 0 else "0 s"
            return (
                f"{rate}; this device's limit is {metric(limit.per_s, unit)} ({limit.source});"
                " it did not do the work"
            )
    return ""


def least_flops(problem: Problem) -> int:
    """FLOPs that no exact backend can do without: as `costs.work_flops`, but without the
    projections of tokens that the mask excludes, which a layer may skip.
    """
    p = problem
    forward = least_attention_flops(p)
    if p.scope != "core":
        forward += 2 * unmasked_queries(p) * p.d_model * p.heads * (p.d_k + p.d_v)
        forward += 2 * unmasked_keys(p) * p.d_model * p.kv_heads * (p.d_k + p.d_v)
    forward += feed_forward_flops(p)
    return {"forward": forward, "backward": 2 * forward, "forward+backward": 3 * forward}[p.passes]


# ---- limits of a device --------------------------------------------------------------------------


def flops_limit(dtype: str, device: Device) -> Limit | None:
    """The highest FLOP/s of matrix products in this dtype; None if nothing is known.

    A CPU's own bound comes before its calibration, which may have had fewer threads.
    """
    if device.kind == "cpu" and (bound := cpu_flops(dtype)):
        return bound
    # TF32 is the fastest way to multiply fp32 that a user can allow.
    names = [
        f"gemm_{one}_flops_per_s" for one in (("fp32", "tf32") if dtype == "fp32" else (dtype,))
    ]
    measured, sheet = _highest(device.peaks, names), _highest(specified(device.name), names)
    known = []
    if measured:
        text = f"{MEASURED_MARGIN:g} x the {metric(measured, 'FLOP/s')} that calibration measured"
        known.append(Limit(MEASURED_MARGIN * measured, text))
    if sheet:
        text = f"{SHEET_MARGIN:g} x the {metric(sheet, 'FLOP/s')} of the data sheet"
        known.append(Limit(max(SHEET_MARGIN * sheet, measured or 0.0), text))
    return min(known, default=None)


def bytes_limit(device: Device) -> Limit | None:
    """The highest bytes/s out of caches; None if nothing is known."""
    if device.kind == "cpu":
        cores = usable_cores()
        text = f"{_clock(cores)} x {L1_BYTES_PER_CYCLE} B per cycle from L1"
        return Limit(cores * CPU_CLOCK_HZ * L1_BYTES_PER_CYCLE, text)
    names = ["copy_bytes_per_s"]
    known = [_highest(rates, names) for rates in (device.peaks, specified(device.name))]
    highest = max((rate for rate in known if rate), default=None)
    if highest is None:
        return None
    return Limit(L2_FACTOR * highest, f"{L2_FACTOR} x the {metric(highest, 'B/s')} of its memory")


def _highest(rates: Mapping[str, float | None] | None, names: Iterable[str]) -> float | None:
    found = ((rates or {}).get(name) for name in names)
    return max((rate for rate in found if rate), default=None)


def cpu_flops(dtype: str) -> Limit | None:
    """Cores x clock x FLOP per cycle; None for a processor whose vector units are not known."""
    flags = cpu_flags()
    if {"sme", "sme2"} & flags:
        return None
    arm = "asimd" in flags
    full = ARM_FLOP_PER_CYCLE if arm else X86_FLOP_PER_CYCLE
    half = ARM_HALF_FLOP_PER_CYCLE if arm else X86_HALF_FLOP_PER_CYCLE
    table = full if dtype == "fp32" else (*half, *full)
    flag, flop = next(((flag, flop) for flag, flop in table if flag in flags), (None, 0))
    if flag is None:
        return None
    cores = usable_cores()
    text = f"{_clock(cores)} x {flop} FLOP per cycle, {flag}"
    return Limit(cores * CPU_CLOCK_HZ * flop, text)


def usable_cores() -> int:
    """Cores that this process may use; a quota allows short calls to use all of them."""
    return len(os.sched_getaffinity(0))


@cache
def _clock(cores: int) -> str:
    return f"{cores} core{'s' if cores != 1 else ''} x {CPU_CLOCK_HZ / 1e9:g} GHz"


# ---- peak rates by data sheets -------------------------------------------------------------------

SPECIFIED: dict[str, tuple[float, float, float, float]] = {
    "NVIDIA A10": (31.2, 62.5, 125, 600),
    "NVIDIA A100 80GB PCIe": (19.5, 156, 312, 1935),
    "NVIDIA A100-PCIE-40GB": (19.5, 156, 312, 1555),
    "NVIDIA A100-SXM4-40GB": (19.5, 156, 312, 1555),
    "NVIDIA A100-SXM4-80GB": (19.5, 156, 312, 2039),
    "NVIDIA B200": (75, 1100, 2250, 8000),
    "NVIDIA GeForce RTX 3090": (35.6, 35.6, 71, 936),
    "NVIDIA GeForce RTX 4090": (82.6, 82.6, 165.2, 1008),
    "NVIDIA GeForce RTX 5090": (104.8, 104.8, 209.5, 1792),
    "NVIDIA H100 80GB HBM3": (67, 494.7, 989.4, 3350),  # SXM
    "NVIDIA H100 NVL": (60, 417.5, 835.5, 3900),
    "NVIDIA H100 PCIe": (51, 378, 756, 2000),
    "NVIDIA H200": (67, 494.7, 989.4, 4800),  # SXM
    "NVIDIA L4": (30.3, 60, 121, 300),
    "NVIDIA L40S": (91.6, 183, 362, 864),
    "NVIDIA RTX 6000 Ada Generation": (91.1, 182.1, 364.2, 960),
    "Tesla T4": (8.1, 0, 65, 320),
    "Tesla V100-PCIE-16GB": (14, 0, 112, 900),
    "Tesla V100-PCIE-32GB": (14, 0, 112, 900),
    "Tesla V100-SXM2-16GB": (15.7, 0, 125, 900),
    "Tesla V100-SXM2-32GB": (15.7, 0, 125, 900),
}
"""By the driver's name of the GPU, since variants of one chip differ in clock and memory: TFLOP/s
in fp32, in TF32, and in fp16 and bf16, which are equal; GB/s. No TF32: matrix units for fp16 alone.

Dense, at boost clock; the sheets also print rates with sparsity, twice as high. Sources: NVIDIA's
data sheets "A100 Tensor Core GPU", "H100 Tensor Core GPU", "H200 Tensor Core GPU", "A10", "L4",
"L40S", "Tesla V100", "T4", "Blackwell" (HGX B200, one of eight GPUs). Others, fp16 and bf16 with
fp32 accumulation, from white papers: "NVIDIA Ampere GA102 GPU Architecture" (RTX 3090), "NVIDIA Ada
GPU Architecture" (RTX 4090, RTX 6000 Ada), "NVIDIA RTX Blackwell GPU Architecture" (RTX 5090).
"""


def specified(device_name: str | None) -> dict[str, float]:
    """FLOP/s and bytes/s by the names of measured peaks. Empty if the GPU is not in the table: a
    wrong peak would be worse than none.
    """
    fp32, tf32, half, gb_per_s = SPECIFIED.get(device_name or "", (0, 0, 0, 0))
    tflops = {"fp32": fp32, "tf32": tf32, "bf16": half * bool(tf32), "fp16": half}
    rates = {f"gemm_{name}_flops_per_s": rate * 1e12 for name, rate in tflops.items()}
    rates["copy_bytes_per_s"] = gb_per_s * 1e9
    return {name: rate for name, rate in rates.items() if rate}
