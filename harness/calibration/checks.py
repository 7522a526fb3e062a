"""Checks of a calibration: work whose reading is known beforehand, read by the probes that runs
use.

A counter that reads what it should on an idle device, on one busy block, on half the time and on a
large matrix product may be believed in between. The loads run in the same loop as the cases of a
run (steady.py).
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from ..measure.clock import SM_CLOCK_HZ, Call
from ..measure.steady_loop import steady_loop
from ..nvml import Device
from ..probes import Readings
from ..probes import load as probe

Verdict = Literal["ok", "off", "not measured"]
# the driver's ring has a sample each 1/6 to 1 s (nvml.h), and the first and the last do not count
WINDOW_S = 3.0
ON_S = 0.01  # one sleeping kernel: long against its launch, short against the ring's period
GEMM = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`found` is None if and only if it was not measured, and `reason` says why; of a check that is
    off it says what may be wrong.
    """

    name: str
    wanted: str
    found: float | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the reading `column` under `load` should be, and what may be wrong where it is not."""

    load: str
    column: str
    low: float
    high: float
    otherwise: str

    def check(self, readings: Readings) -> Check:
        reason = readings.reasons.get(self.column, "a counter is missing")
        return within(
            f"{self.load}: {self.column}",
            self.low,
            self.high,
            readings.values.get(self.column),
            reason,
            self.otherwise,
        )


def within(
    name: str, low: float, high: float, found: float | None, missing: str, otherwise: str
) -> Check:
    wanted = f"{low:.3g} to {high:.3g}" if low > 0 else f"at most {high:.3g}"
    if found is None:
        return Check(name=name, wanted=wanted, found=None, verdict="not measured", reason=missing)
    good = low <= found <= high
    return Check(
        name=name,
        wanted=wanted,
        found=found,
        verdict="ok" if good else "off",
        reason="" if good else otherwise,
    )


# ---- what should be read -------------------------------------------------------------------------


def cuda_wanted(sm_count: int) -> tuple[Wanted, ...]:
    """On a GPU, or an instance of one, with so many SMs."""
    others = "other work runs on this GPU: see attnbench doctor"
    window = "the windows do not lie where the work is"
    tensor = "tensor cores were not counted, or not used"
    one = 1 / sm_count
    product = "large bf16 product"
    return (
        Wanted(load="idle", column="kernel_busy_ratio", low=0, high=0.05, otherwise=others),
        Wanted(load="idle", column="sm_active_ratio", low=0, high=0.01, otherwise=others),
        Wanted(load="one block", column="kernel_busy_ratio", low=0.95, high=1, otherwise=window),
        Wanted(
            load="one block",
            column="sm_active_ratio",
            low=0.5 * one,
            high=1.5 * one,
            otherwise=f"one of {sm_count} SMs was at work",
        ),
        Wanted(
            load="half the time",
            column="kernel_busy_ratio",
            low=0.4,
            high=0.6,
            otherwise="the counter does not follow a duty cycle",
        ),
        Wanted(load=product, column="sm_active_ratio", low=0.85, high=1, otherwise=window),
        Wanted(load=product, column="any_tensor_ratio", low=0.4, high=1, otherwise=tensor),
        Wanted(load=product, column="hmma_ratio", low=0.4, high=1, otherwise=tensor),
        Wanted(
            load=product,
            column=DISORDER,
            low=0,
            high=0.02,
            otherwise="a part exceeds its whole: a counter means something else",
        ),
    )


DISORDER = "disorder_ratio"
# an SM with resident warps is active, and no SM is where no context is; HMMA is one of the tensor
# operations
CONTAINED = (
    ("sm_occupancy_ratio", "sm_active_ratio"),
    ("sm_active_ratio", "graphics_ratio"),
    ("hmma_ratio", "any_tensor_ratio"),
)
CPU_WANTED = (
    Wanted(
        load="idle",
        column="host_busy_cores",
        low=0,
        high=0.05,
        otherwise="a thread of this process is not at rest",
    ),
    Wanted(
        load="one thread",
        column="host_busy_cores",
        low=0.9,
        high=1.05,
        otherwise="others took the core: other work runs on this machine",
    ),
)
CUDA_PROBES = ("busy", "gpm")
CPU_PROBES = ("host",)


def checked(
    loads: Mapping[str, "Load"],
    wanted: Iterable[Wanted],
    probes: Iterable[str],
    device: Device,
    window_s: float = WINDOW_S,
) -> list[Check]:
    """Each load once, all its readings from one window."""
    readings = {name: read(load, probes, device, window_s) for name, load in loads.items()}
    return [one.check(readings[one.load]) for one in wanted]


def read(load: "Load", probes: Iterable[str], device: Device, window_s: float) -> Readings:
    watches = [probe(name).watch(device) for name in probes]
    steady_loop(load.call, load.call_ms, window_s, [*watches], load.device)
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for watch in watches:
        found = watch.readings()
        values |= found.values
        reasons |= found.reasons
    return Readings(values | {DISORDER: disorder(values)}, reasons)


def disorder(values: Mapping[str, Any]) -> float | None:
    """By how much a counter exceeds one that contains it, at most; None where one is missing."""
    known: dict[str, float] = {name: value for name, value in values.items() if value is not None}
    if not all(name in known for pair in CONTAINED for name in pair):
        return None
    return max(0.0, *(known[part] - known[whole] for part, whole in CONTAINED))


# ---- loads ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A call to repeat. `device` is a CPU also for work on a GPU that has ended when the call
    returns: no launch then runs ahead.
    """

    call: Call
    call_ms: float
    device: torch.device


CPU = torch.device("cpu")
ON_MS = ON_S * 1e3
IDLE = Load(call=lambda: time.sleep(ON_S), call_ms=ON_MS, device=CPU)


def cuda_loads(device: torch.device) -> dict[str, Load]:
    """By the names that cuda_wanted uses; idle first, before anything warms the GPU."""
    generator = torch.Generator(device).manual_seed(0)
    a, b = (
        torch.randn(GEMM, GEMM, device=device, generator=generator).bfloat16() for _ in range(2)
    )  # [GEMM, GEMM]
    out = torch.empty_like(a)

    def multiply() -> object:
        return torch.matmul(a, b, out=out)

    def one_block() -> None:
        torch.cuda._sleep(int(ON_S * SM_CLOCK_HZ))

    def on_and_off() -> None:
        spent_s = seconds_of(one_block, device)
        time.sleep(spent_s)

    multiply()
    seconds_of(one_block, device)
    return {
        "idle": IDLE,
        "one block": Load(call=one_block, call_ms=ON_MS, device=device),
        "half the time": Load(call=on_and_off, call_ms=2 * ON_MS, device=CPU),
        "large bf16 product": Load(
            call=multiply, call_ms=1e3 * seconds_of(multiply, device), device=device
        ),
    }


def cpu_loads() -> dict[str, Load]:
    return {"idle": IDLE, "one thread": Load(call=one_thread, call_ms=ON_MS, device=CPU)}


def one_thread() -> None:
    """Keeps one core at work."""
    end = time.perf_counter() + ON_S
    while time.perf_counter() < end:
        pass


def seconds_of(call: Call, device: torch.device) -> float:
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    return time.perf_counter() - start
