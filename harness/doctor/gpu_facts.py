"""What NVML tells of every GPU, and of every instance of one (MIG): values with units in their
names, or the reasons why there are none.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..calibration.calibrate import newest_calibration
from ..measure.utilization_tier import Tier, tier_of
from ..nvml import (
    WORDS,
    Answer,
    Device,
    Gpu,
    clock_event_reasons,
    each_gpu,
    instances,
    temperature_c,
    text,
)
from ..probes import busy, gpm
from .processes import Users, users

OBSERVE_S = 1.0
"""Counters want 0.1 s (nvml.h), and a driver that was loaded for us needs time until its ring holds
a few samples.
"""
# how far back the driver's ring is read to see whether it works: several samples even where its
# period is 1 s
RING_S = 5.0
COMPUTE_MODES = (
    "default",
    "exclusive thread",
    "prohibited",
    "exclusive process",
)  # nvml.h, nvmlComputeMode_t


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU or instance. `values` are None where `reasons` has an entry. `tier`: where a run
    would take utilization from."""

    uuid: str | None
    calibration: dict[str, Any] | None
    instance_of: str | None
    torch_uses: bool
    tier: Tier
    values: dict[str, Any]
    reasons: dict[str, str]
    users: Users | None

    @property
    def short_uuid(self) -> str:
        """Enough to tell GPUs apart, and the same whatever CUDA_VISIBLE_DEVICES says."""
        return "-".join(self.uuid.split("-")[:2]) if self.uuid else "GPU without UUID"

    @property
    def lost(self) -> bool:
        return any(WORDS["NVML_ERROR_GPU_IS_LOST"] in reason for reason in self.reasons.values())

    def as_dict(self) -> dict[str, Any]:
        return {
            "uuid": self.uuid,
            "name": self.values.get("name"),
            "short_uuid": self.short_uuid,
            "instance_of": self.instance_of,
            "torch_uses": self.torch_uses,
            "gpm": self.values.get("sm_active_ratio") is not None,
            "tier": self.tier,
            **self.values,
            "processes": (
                None
                if self.users is None
                else [process.as_dict() for process in self.users.processes]
            ),
            "processes_known": self.users is not None and self.users.known,
            "reasons": self.reasons,
        }


def look(chosen: str | None, root: Path) -> Answer:
    """A tuple of GpuFacts; `chosen` is the UUID of the one that torch uses, `root` the folder that
    holds calibrations.
    """
    found = each_gpu()
    if found.value is None:
        return found
    gpus = [gpu for one in found.value if one.value for gpu in (one.value, *instances(one.value))]
    watches = [gpm.watch(Device(uuid=uuid_of(gpu))) for gpu in gpus]
    start_us = now_us()
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch)
        time.sleep(OBSERVE_S if gpus else 0)
    lost = [
        silent(number, one.reason) for number, one in enumerate(found.value) if one.value is None
    ]
    return Answer(
        (
            *(
                facts_of(gpu, watch, chosen, root, start_us)
                for gpu, watch in zip(gpus, watches, strict=True)
            ),
            *lost,
        )
    )


def facts_of(
    gpu: Gpu, watch: gpm.GpmWatch, chosen: str | None, root: Path, start_us: int
) -> GpuFacts:
    answers = {name: ask(gpu) for name, ask in FACTS.items()}
    counters = watch.readings()
    ring = busy_since(gpu, start_us - int(RING_S * 1e6))
    # Not the longer window: what a run has just done here is no sign of somebody else.
    nearest = (busy_since(gpu, start_us), ring if gpu.instance is not None else busy_now(gpu))
    neither = Answer(None, "; ".join(dict.fromkeys(one.reason for one in nearest)))
    answers["kernel_busy_ratio"] = next((one for one in nearest if one.value is not None), neither)
    listed = users(gpu)
    values = {name: answer.value for name, answer in answers.items()} | counters.values
    reasons = {
        name: answer.reason for name, answer in answers.items() if answer.value is None
    } | counters.reasons
    uuid = uuid_of(gpu)
    if uuid is None:
        reasons["uuid"] = gpu.ask("nvmlDeviceGetUUID").reason
    calibration = newest_calibration(root, uuid, values["name"])
    return GpuFacts(
        uuid=uuid,
        instance_of=None if gpu.instance is None else uuid_of(gpu.board),
        torch_uses=chosen is not None and uuid == chosen,
        tier=tier_of(
            [counters.values, {"kernel_busy_ratio": ring.value}],
            "cuda",
            calibration["peaks"] if calibration else None,
        ),
        calibration=calibration,
        values=values,
        reasons=reasons if listed.value is not None else reasons | {"processes": listed.reason},
        users=listed.value,
    )


def silent(number: int, reason: str) -> GpuFacts:
    """A GPU of which the driver gives no handle, so that not even its UUID is known."""
    names = [*FACTS, *gpm.COLUMNS, "kernel_busy_ratio"]
    why = f"number {number} in the driver's order: {reason}"
    nothing = dict.fromkeys([*names, "uuid", "processes"], why)
    return GpuFacts(
        uuid=None,
        instance_of=None,
        torch_uses=False,
        tier="host",
        calibration=None,
        values=dict.fromkeys(names),
        reasons=nothing,
        users=None,
    )


def uuid_of(gpu: Gpu) -> str | None:
    uuid: str | None = text(gpu.ask("nvmlDeviceGetUUID").value)
    return uuid


def busy_since(gpu: Gpu, from_us: int) -> Answer:
    """The same quantity as the probe `busy`, from the driver's ring of samples since then (UNIX
    time).
    """
    if gpu.instance is not None:
        return Answer(
            None, "the driver counts busy time for whole GPUs only, not for an instance (MIG)"
        )
    ring = gpu.ask("nvmlDeviceGetSamples", gpu.nvml.NVML_GPU_UTILIZATION_SAMPLES, from_us)
    return busy.mean_ratio(
        ring if ring.value is None else busy.percentages(ring.value, from_us, now_us())
    )


def busy_now(gpu: Gpu) -> Answer:
    """The driver's latest figure; it says little of a window, but whether somebody works here."""
    return converted(gpu.ask("nvmlDeviceGetUtilizationRates"), lambda rates: rates.gpu / 100)


def now_us() -> int:
    return time.time_ns() // 1000


def converted(answer: Answer, convert: Callable[[Any], Any]) -> Answer:
    return answer if answer.value is None else Answer(convert(answer.value))


def memory(member: str) -> Callable[[Gpu], Answer]:
    def ask(gpu: Gpu) -> Answer:
        found = gpu.ask("nvmlDeviceGetMemoryInfo", version=getattr(gpu.nvml, "nvmlMemory_v2", None))
        return converted(found, lambda info: int(getattr(info, member)))

    return ask


def of_board(
    function: str, convert: Callable[[Any], Any] = int, *, constants: tuple[str, ...] = ()
) -> Callable[[Gpu], Answer]:
    """A question to the whole board, with pynvml's constants of these names as further
    arguments.
    """
    return lambda gpu: converted(
        gpu.board.ask(function, *(getattr(gpu.nvml, name) for name in constants)), convert
    )


FACTS: dict[str, Callable[[Gpu], Answer]] = {
    "name": lambda gpu: converted(gpu.ask("nvmlDeviceGetName"), text),
    "compute_capability": of_board(
        "nvmlDeviceGetCudaComputeCapability", lambda pair: f"{pair[0]}.{pair[1]}"
    ),
    "memory_total_bytes": memory("total"),
    "memory_free_bytes": memory("free"),
    "memory_used_bytes": memory("used"),
    "sm_clock_mhz": of_board("nvmlDeviceGetClockInfo", constants=("NVML_CLOCK_SM",)),
    "max_sm_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", constants=("NVML_CLOCK_SM",)),
    "memory_clock_mhz": of_board("nvmlDeviceGetClockInfo", constants=("NVML_CLOCK_MEM",)),
    "max_memory_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", constants=("NVML_CLOCK_MEM",)),
    "clock_event_mask": clock_event_reasons,
    "temperature_c": temperature_c,
    "temperature_limit_c": of_board(
        "nvmlDeviceGetTemperatureThreshold", constants=("NVML_TEMPERATURE_THRESHOLD_SLOWDOWN",)
    ),
    "power_w": of_board("nvmlDeviceGetPowerUsage", lambda milliwatts: milliwatts / 1e3),
    "power_limit_w": of_board(
        "nvmlDeviceGetEnforcedPowerLimit", lambda milliwatts: milliwatts / 1e3
    ),
    "energy_j": of_board(
        "nvmlDeviceGetTotalEnergyConsumption", lambda millijoules: millijoules / 1e3
    ),
    "ecc_enabled": of_board("nvmlDeviceGetEccMode", lambda modes: bool(modes[0])),
    "uncorrected_ecc_count": of_board(
        "nvmlDeviceGetTotalEccErrors",
        constants=("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"),
    ),
    "persistence_enabled": of_board("nvmlDeviceGetPersistenceMode", bool),
    "compute_mode": of_board(
        "nvmlDeviceGetComputeMode",
        lambda mode: COMPUTE_MODES[mode] if 0 <= mode < len(COMPUTE_MODES) else f"unknown ({mode})",
    ),
    "mig_enabled": of_board("nvmlDeviceGetMigMode", lambda modes: bool(modes[0])),
}
"""Clocks, power, heat and errors are the board's also where an instance of it is asked."""
