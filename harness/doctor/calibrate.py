"""Calibrate a device: check its counters under known loads, measure its peaks, and keep both.

The readings of the loads are known beforehand, and read by the probes that runs use, in the loop of
the cases of a run (measure/steady_loop.py). A counter that is right on an idle device, with one
busy block, for half the time and on a large matrix product is trusted in between.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ..devices.calibration_file import FILE, SCHEMA, append_line
from ..devices.environment import fix_threads, pick_device
from ..devices.host import cpu_name
from ..devices.nvml import Device, nvml_device
from ..devices.probes import load as load_probe
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet, option
from ..measure.clock import SM_CLOCK_HZ
from ..measure.graph_capture import Call
from ..measure.physical_floor import specified
from ..measure.steady_loop import steady_loop
from ..process.device_lock import device_lock
from ..stats.intervals import latency_interval
from .peaks import KINDS, Peak, gemm, measure

WINDOW_S = 3.0
"""The driver's ring has a sample each 1/6 to 1 s (nvml.h); the first and the last do not count."""
ON_S = 0.01  # one sleeping kernel: long against its launch, short against the ring's period
ON_MS = ON_S * 1e3
GEMM = 8192
CPU = torch.device("cpu")


class Range(NamedTuple):
    """Where a quantity should be, and what may be wrong if it is not."""

    quantity: str
    low: float
    high: float
    cause: str

    def check(self, subject: str, found: float | None, missing: str = "") -> dict[str, Any]:
        """As in calibration.jsonl. `subject`: the load or the peak; `missing`: why there is no
        value. `reason`: why it was not measured or, if it is off, what may be wrong.
        """
        good = found is not None and self.low <= found <= self.high
        low, high = f"{self.low:.3g}", f"{self.high:.3g}"
        return {
            "name": f"{subject}: {self.quantity}",
            "wanted": f"{low} to {high}" if self.low > 0 else f"at most {high}",
            "found": found,
            "verdict": "not measured" if found is None else "ok" if good else "off",
            "reason": missing if found is None else "" if good else self.cause,
        }


# ---- loads, idle first, before anything warms the GPU --------------------------------------------


class Load(NamedTuple):
    """A call to repeat, and the columns of probes meanwhile.

    `device` is the CPU also for GPU work that ends before the call returns: no launch runs ahead.
    """

    name: str
    call: Call
    call_ms: float
    expected: tuple[Range, ...]
    device: torch.device = CPU


DISORDER = "disorder_ratio"
CONTAINED = (
    ("sm_occupancy_ratio", "sm_active_ratio"),
    ("sm_active_ratio", "graphics_ratio"),
    ("hmma_ratio", "any_tensor_ratio"),
)
"""Counters, and counters that contain them: an SM with resident warps is active, no SM is active
without a context, and HMMA is one of the tensor operations.
"""
PROBES = {"cpu": ("host",), "cuda": ("busy", "gpm")}
LOADS = {"cpu": 2, "cuda": 4}


def loads(device: torch.device) -> Iterator[Load]:
    return gpu_loads(device) if device.type == "cuda" else cpu_loads()


def cpu_loads() -> Iterator[Load]:
    sleeps = Range("host_busy_cores", 0, 0.05, "a thread of this process does not sleep")
    yield Load("idle", idle, ON_MS, (sleeps,))
    shared = "the core was shared: other work runs on this machine"
    yield Load("one thread", spin, ON_MS, (Range("host_busy_cores", 0.9, 1.05, shared),))


def gpu_loads(device: torch.device) -> Iterator[Load]:
    """For a GPU, or an instance of one. Raises torch.OutOfMemoryError."""
    sm_count = torch.cuda.get_device_properties(device).multi_processor_count
    others = "other work runs on this GPU: see attnbench doctor"
    window = "the windows do not cover the work"
    tensor = "tensor cores were not counted, or not used"
    nothing = (
        Range("kernel_busy_ratio", 0, 0.05, others),
        Range("sm_active_ratio", 0, 0.01, others),
    )
    yield Load("idle", idle, ON_MS, nothing)
    one_sm = f"one of {sm_count} SMs was active"
    one_block = (
        Range("kernel_busy_ratio", 0.95, 1, window),
        Range("sm_active_ratio", 0.5 / sm_count, 1.5 / sm_count, one_sm),
    )
    yield Load("one block", sleep_on_gpu, ON_MS, one_block, device)
    duty = Range("kernel_busy_ratio", 0.4, 0.6, "the counter does not follow a duty cycle")
    yield Load("half the time", partial(on_and_off, device), 2 * ON_MS, (duty,))
    disorder = "a part exceeds its whole: a counter means something else"
    product = (
        Range("sm_active_ratio", 0.85, 1, window),
        Range("any_tensor_ratio", 0.4, 1, tensor),
        Range("hmma_ratio", 0.4, 1, tensor),
        Range(DISORDER, 0, 0.02, disorder),
    )
    _, multiply = gemm(device, torch.bfloat16, GEMM)
    multiply()
    call_ms = 1e3 * seconds_of(multiply, device)
    yield Load("large bf16 product", multiply, call_ms, product, device)


def idle() -> None:
    time.sleep(ON_S)


def spin() -> None:
    """Keeps one core busy."""
    end = time.perf_counter() + ON_S
    while time.perf_counter() < end:
        pass


def sleep_on_gpu() -> None:
    torch.cuda._sleep(int(ON_S * SM_CLOCK_HZ))


def on_and_off(device: torch.device) -> None:
    time.sleep(seconds_of(sleep_on_gpu, device))


def seconds_of(call: Call, device: torch.device) -> float:
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    return time.perf_counter() - start


def check_load(load: Load, kind: str, gpu: Device) -> Iterator[dict[str, Any]]:
    """All its readings from one window."""
    watches = [load_probe(name).watch(gpu) for name in PROBES[kind]]
    steady_loop(load.call, load.call_ms, WINDOW_S, [*watches], load.device)
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for watch in watches:
        found = watch.readings()
        values |= found.values
        reasons |= found.reasons
    values[DISORDER] = disorder(values)
    for one in load.expected:
        missing = reasons.get(one.quantity, "a counter is missing")
        yield one.check(load.name, values.get(one.quantity), missing)


def disorder(values: Mapping[str, Any]) -> float | None:
    """The most by which a counter exceeds one that contains it; None if one is missing."""
    if any(values.get(name) is None for pair in CONTAINED for name in pair):
        return None
    return max(0.0, *(float(values[part] - values[whole]) for part, whole in CONTAINED))


# ---- a calibration -------------------------------------------------------------------------------


HIGHEST_SHARE = 1.1  # of the data sheet's peak: some boards exceed its boost clock by up to 8 %
LOWEST_SHARE = 0.3  # a GPU at its power limit still reaches more
DISTURBED = "repeats differ: other work runs on this device, or its clock changes"
STEADY = Range("half-width of repeats", 0, 0.15, DISTURBED)
"""Half the width of a rate's interval: beyond it other work ran, and the best of the repeats may be
no peak.
"""


def calibrate(
    requested: str,
    root: Path,
    *,
    wait: bool,
    step: Callable[[str, int], object] = lambda what, total: None,
) -> dict[str, Any]:
    """Measure, check, and append to `root`/calibration.jsonl the line that is returned.

    `step` is called with the name of each step when it begins, and how many there are.
    Raises Refusal if there is no such device, it is in use, or the file cannot be written.
    """
    fix_threads()
    device, why = pick_device(requested)
    if why:
        on_cpu = f"calibrate with {option('device', 'cpu')}"
        raise EnvironmentUnmet(f"{no_device(requested, why)}; {on_cpu}, or see attnbench doctor")
    append_line(root / FILE, None)
    gpu = nvml_device(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    total = LOADS[device.type] + len(KINDS[device.type]) + 1  # copying
    checks: list[dict[str, Any]] = []
    with device_lock(gpu.uuid or "cpu", wait=wait, check=lambda: None):
        try:
            for load in loads(device):
                step(f"checking counters: {load.name}", total)
                checks += check_load(load, device.type, gpu)
        except torch.OutOfMemoryError:
            raise EnvironmentUnmet(
                f"{name} has too little free memory to be calibrated; see attnbench doctor"
            ) from None
        peaks = measure(device, lambda what: step(what, total))
    stated = specified(name)
    line = {
        "schema": SCHEMA,
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device.type,
        "device_name": name,
        "device_uuid": gpu.uuid,
        "torch": torch.__version__,
        "peaks": {peak.name: peak.best_per_s for peak in peaks},
        "clocks_mhz": {peak.name: peak.clock_mhz for peak in peaks if peak.clock_mhz},
        "specified": {peak.name: stated.get(peak.name) for peak in peaks},
        "checks": [
            *checks,
            *(one for peak in peaks for one in check_peak(peak, stated.get(peak.name))),
        ],
        "samples": {
            peak.name: {"work": peak.work, "block_ms": peak.block_ms}
            for peak in peaks
            if peak.block_ms
        },
    }
    append_line(root / FILE, line)
    return line


def check_peak(peak: Peak, stated: float | None) -> Iterator[dict[str, Any]]:
    """Whether the repeats agree and, with a data sheet, whether the measured peak is possible."""
    best = peak.best_per_s
    if best is None:
        not_measured = Range("repeats", 0, 0, "").check(peak.name, None, peak.reason)
        yield not_measured | {"wanted": "any"}
        return
    half = latency_interval([peak.block_ms]).half_width_ratio
    yield STEADY.check(peak.name, half if isfinite(half) else None, "too few repeats")
    if stated is not None:
        cause = (
            "beyond the data sheet: the work or the clock is wrong"
            if best > stated
            else "far below the data sheet: held back, or a slow kernel"
        )
        share = Range("share of specified", LOWEST_SHARE, HIGHEST_SHARE, cause)
        yield share.check(peak.name, best / stated)
