"""Calibrate a device: check its counters under known loads, measure its peaks, and keep both.

The readings of the loads are known beforehand, and read by the probes that runs use, in the loop of
the cases of a run (measure/steady_loop.py). A counter that is right on an idle device, with one
busy block, for half the time and on a large matrix product is trusted in between.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import torch

from ..devices.calibration_file import SCHEMA, append, check_writable
from ..devices.cpu import cpu_name
from ..devices.environment import fix_threads, pick_device
from ..devices.nvml import Device, nvml_device
from ..devices.probes import Readings
from ..devices.probes import load as load_probe
from ..devices.this_device import no_device
from ..files.errors import EnvironmentUnmet
from ..measure.clock import SM_CLOCK_HZ
from ..measure.graph_capture import Call
from ..measure.physical_floor import specified
from ..measure.steady_loop import steady_loop
from ..process.device_lock import device_lock
from .peaks import KINDS, Peak, Sizes, gemm, measure

WINDOW_S = 3.0
"""The driver's ring has a sample each 1/6 to 1 s (nvml.h); the first and the last do not count."""
ON_S = 0.01  # one sleeping kernel: long against its launch, short against the ring's period
GEMM = 8192

Outcome = Literal["ok", "off", "not measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`found` is None if and only if it was not measured.

    `reason`: why it was not measured or, if it is off, what may be wrong.
    """

    name: str
    wanted: str
    found: float | None = None
    verdict: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The range that a quantity should be in, and what may be wrong if it is not.

    `subject`: the load, or the peak. `quantity`: of a load, a column of a probe.
    """

    subject: str
    quantity: str
    low: float
    high: float
    cause: str

    def check(self, found: float | None, missing: str = "") -> Check:
        """`missing`: why there is no value."""
        good = found is not None and self.low <= found <= self.high
        low, high = f"{self.low:.3g}", f"{self.high:.3g}"
        return Check(
            name=f"{self.subject}: {self.quantity}",
            wanted=f"{low} to {high}" if self.low > 0 else f"at most {high}",
            found=found,
            verdict="not measured" if found is None else "ok" if good else "off",
            reason=missing if found is None else "" if good else self.cause,
        )


# ---- expectations --------------------------------------------------------------------------------

DISORDER = "disorder_ratio"
CONTAINED = (
    ("sm_occupancy_ratio", "sm_active_ratio"),
    ("sm_active_ratio", "graphics_ratio"),
    ("hmma_ratio", "any_tensor_ratio"),
)
"""Counters, and counters that contain them: an SM with resident warps is active, no SM is active
without a context, and HMMA is one of the tensor operations.
"""
CPU_EXPECTATIONS = (
    Expectation("idle", "host_busy_cores", 0, 0.05, "a thread of this process does not sleep"),
    Expectation(
        *("one thread", "host_busy_cores", 0.9, 1.05),
        "the core was shared: other work runs on this machine",
    ),
)
PROBES = {"cpu": ("host",), "cuda": ("busy", "gpm")}


def cuda_expectations(sm_count: int) -> tuple[Expectation, ...]:
    """For a GPU, or an instance of one, with this many SMs."""
    product, half = "large bf16 product", "half the time"
    others = "other work runs on this GPU: see attnbench doctor"
    window = "the windows do not cover the work"
    tensor = "tensor cores were not counted, or not used"
    one_sm = f"one of {sm_count} SMs was active"
    duty = "the counter does not follow a duty cycle"
    disorder = "a part exceeds its whole: a counter means something else"
    low, high = 0.5 / sm_count, 1.5 / sm_count
    return (
        Expectation("idle", "kernel_busy_ratio", 0, 0.05, others),
        Expectation("idle", "sm_active_ratio", 0, 0.01, others),
        Expectation("one block", "kernel_busy_ratio", 0.95, 1, window),
        Expectation("one block", "sm_active_ratio", low, high, one_sm),
        Expectation(half, "kernel_busy_ratio", 0.4, 0.6, duty),
        Expectation(product, "sm_active_ratio", 0.85, 1, window),
        Expectation(product, "any_tensor_ratio", 0.4, 1, tensor),
        Expectation(product, "hmma_ratio", 0.4, 1, tensor),
        Expectation(product, DISORDER, 0, 0.02, disorder),
    )


# ---- loads ---------------------------------------------------------------------------------------


CPU = torch.device("cpu")
ON_MS = ON_S * 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A call to repeat.

    `device` is the CPU also for GPU work that ends before the call returns: no launch runs ahead.
    """

    call: Call
    call_ms: float
    device: torch.device = CPU


def idle(_: torch.device) -> Load:
    return Load(call=lambda: time.sleep(ON_S), call_ms=ON_MS)


def one_thread(_: torch.device) -> Load:
    """Keeps one core busy."""

    def spin() -> None:
        end = time.perf_counter() + ON_S
        while time.perf_counter() < end:
            pass

    return Load(call=spin, call_ms=ON_MS)


def one_block(device: torch.device) -> Load:
    return Load(call=sleep_on_gpu, call_ms=ON_MS, device=device)


def half_the_time(device: torch.device) -> Load:
    def on_and_off() -> None:
        spent_s = seconds_of(sleep_on_gpu, device)
        time.sleep(spent_s)

    return Load(call=on_and_off, call_ms=2 * ON_MS)


def large_product(device: torch.device) -> Load:
    _, multiply = gemm(device, torch.bfloat16, GEMM)()
    multiply()
    return Load(call=multiply, call_ms=1e3 * seconds_of(multiply, device), device=device)


def sleep_on_gpu() -> None:
    torch.cuda._sleep(int(ON_S * SM_CLOCK_HZ))


def seconds_of(call: Call, device: torch.device) -> float:
    torch.cuda.synchronize(device)
    start = time.perf_counter()
    call()
    torch.cuda.synchronize(device)
    return time.perf_counter() - start


LOADS: dict[str, dict[str, Callable[[torch.device], Load]]] = {
    "cpu": {"idle": idle, "one thread": one_thread},
    "cuda": {
        "idle": idle,
        "one block": one_block,
        "half the time": half_the_time,
        "large bf16 product": large_product,
    },
}
"""By the subjects of the expectations; idle comes first, before anything warms the GPU."""


# ---- checking ------------------------------------------------------------------------------------


def check_counters(
    device: torch.device,
    gpu: Device,
    window_s: float = WINDOW_S,
    begins: Callable[[str], object] = lambda what: None,
) -> list[Check]:
    """Each load once, all its readings from one window. `begins` hears of each load.

    Raises torch.OutOfMemoryError if the loads do not fit.
    """
    readings = {}
    for name, make in LOADS[device.type].items():
        begins(f"checking counters: {name}")
        readings[name] = read(make(device), PROBES[device.type], gpu, window_s)
    return [check_reading(one, readings[one.subject]) for one in expectations(device)]


def expectations(device: torch.device) -> tuple[Expectation, ...]:
    if device.type != "cuda":
        return CPU_EXPECTATIONS
    return cuda_expectations(torch.cuda.get_device_properties(device).multi_processor_count)


def read(load: Load, probes: Iterable[str], device: Device, window_s: float) -> Readings:
    watches = [load_probe(name).watch(device) for name in probes]
    steady_loop(load.call, load.call_ms, window_s, [*watches], load.device)
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for watch in watches:
        found = watch.readings()
        values |= found.values
        reasons |= found.reasons
    return Readings(values | {DISORDER: disorder(values)}, reasons)


def disorder(values: Mapping[str, Any]) -> float | None:
    """The most by which a counter exceeds one that contains it; None if one is missing."""
    known: dict[str, float] = {name: value for name, value in values.items() if value is not None}
    if not all(name in known for pair in CONTAINED for name in pair):
        return None
    return max(0.0, *(known[part] - known[whole] for part, whole in CONTAINED))


def check_reading(expectation: Expectation, readings: Readings) -> Check:
    column = expectation.quantity
    reason = readings.reasons.get(column, "a counter is missing")
    return expectation.check(readings.values.get(column), reason)


# ---- a calibration -------------------------------------------------------------------------------


STEADY_RATIO = 0.15
"""Half the width of a rate's interval: beyond it other work ran, and the best of the repeats may be
no peak.
"""
HIGHEST_SHARE = 1.1  # of the data sheet's peak: some boards exceed its boost clock by up to 8 %
LOWEST_SHARE = 0.3  # a GPU at its power limit still reaches more


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`specified`: the data sheet's peaks, {} if unknown. `device_uuid` is None on a CPU."""

    utc: str
    device: str
    device_name: str | None
    device_uuid: str | None
    torch: str
    peaks: Sequence[Peak]
    specified: dict[str, float]
    checks: Sequence[Check]

    @property
    def exit_code(self) -> int:
        return 1 if any(check.verdict == "off" for check in self.checks) else 0

    def as_line(self) -> dict[str, Any]:
        """A line of calibration.jsonl.

        Peaks are the best of the repeats; `samples` has all repeats in ms, [block][call].
        """
        return {
            "schema": SCHEMA,
            "utc": self.utc,
            "device": self.device,
            "device_name": self.device_name,
            "device_uuid": self.device_uuid,
            "torch": self.torch,
            "peaks": {peak.name: peak.best_per_s for peak in self.peaks},
            "clocks_mhz": {peak.name: peak.clock_mhz for peak in self.peaks if peak.clock_mhz},
            "specified": {peak.name: self.specified.get(peak.name) for peak in self.peaks},
            "checks": [asdict(check) for check in self.checks],
            "samples": {
                peak.name: {"work": peak.work, "block_ms": peak.block_ms}
                for peak in self.peaks
                if peak.block_ms
            },
        }


def calibrate(
    requested: str,
    root: Path,
    *,
    wait: bool,
    sizes: Sizes | None = None,
    window_s: float = WINDOW_S,
    step: Callable[[str, int], object] = lambda what, total: None,
) -> Calibration:
    """Measure, check, and append to `root`/calibration.jsonl.

    `step` is called with the name of each step when it begins, and how many there are.
    Raises Refusal if there is no such device, it is in use, or the file cannot be written.
    """
    fix_threads()
    device, why = pick_device(requested)
    if why:
        raise EnvironmentUnmet(
            f"{no_device(requested, why)}; calibrate with --device cpu, or see attnbench doctor"
        )
    check_writable(root)
    gpu = nvml_device(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    total = len(LOADS[device.type]) + len(KINDS[device.type]) + 1  # copying

    def begins(what: str) -> None:
        step(what, total)

    with device_lock(gpu.uuid or "cpu", wait=wait, check=lambda: None):
        try:
            checks = check_counters(device, gpu, window_s, begins)
        except torch.OutOfMemoryError:
            raise EnvironmentUnmet(
                f"{name} has too little free memory to be calibrated; see attnbench doctor"
            ) from None
        peaks = measure(device, sizes, begins)
    stated = specified(name)
    calibration = Calibration(
        utc=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.type,
        device_name=name,
        device_uuid=gpu.uuid,
        torch=torch.__version__,
        peaks=peaks,
        specified=stated,
        checks=[*checks, *(one for p in peaks for one in check_peak(p, stated.get(p.name)))],
    )
    append(root, calibration.as_line())
    return calibration


def check_peak(peak: Peak, stated: float | None) -> list[Check]:
    """Whether the repeats agree and, with a data sheet, whether the measured peak is possible."""
    best = peak.best_per_s
    if best is None:
        name = f"{peak.name}: repeats"
        return [Check(name=name, wanted="any", verdict="not measured", reason=peak.reason)]
    disturbed = "repeats differ: other work runs on this device, or its clock changes"
    steady = Expectation(peak.name, "half-width of repeats", 0, STEADY_RATIO, disturbed)
    half = peak.typical.half_width_ratio
    checks = [steady.check(half if isfinite(half) else None, "too few repeats")]
    if stated is not None:
        cause = (
            "beyond the data sheet: the work or the clock is wrong"
            if best > stated
            else "far below the data sheet: held back, or a slow kernel"
        )
        share = "share of specified"
        possible = Expectation(peak.name, share, LOWEST_SHARE, HIGHEST_SHARE, cause)
        checks.append(possible.check(best / stated))
    return checks
