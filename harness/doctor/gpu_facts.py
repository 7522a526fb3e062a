"""NVML's facts about each GPU and each instance of one (MIG), or the reasons why there are none."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..machine.calibration_file import newest_calibration
from ..machine.nvml import (
    ERROR_TEXTS,
    Device,
    Gpu,
    Reading,
    clock_event_mask,
    each_gpu,
    instances,
    latest_busy_ratio,
    memory_clock_mhz,
    memory_info,
    power_w,
    sm_clock_mhz,
    temperature_c,
    text,
)
from ..probes import Watch, busy, gpm
from ..process.gpu_users import Users, users
from ..rows.utilization import Tier, tier_of

OBSERVE_S = 1.0
"""Counters need 0.1 s (nvml.h); the ring of a driver that was just loaded needs a few samples."""
RING_S = 5.0
"""How far back the driver's ring is read: several samples even if its period is 1 s."""
COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
"""nvml.h, nvmlComputeMode_t."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """A GPU or an instance. `reasons`: why a value is None. `tier`: a run's kind of utilization."""

    uuid: str | None
    values: dict[str, Any]
    reasons: dict[str, str]
    calibration: dict[str, Any] | None = None
    instance_of: str | None = None
    torch_uses: bool = False
    tier: Tier = "host"
    users: Users | None = None

    @property
    def short_uuid(self) -> str:
        """Enough to distinguish GPUs, whatever CUDA_VISIBLE_DEVICES is."""
        return "-".join(self.uuid.split("-")[:2]) if self.uuid else "GPU without UUID"

    @property
    def lost(self) -> bool:
        lost = ERROR_TEXTS["NVML_ERROR_GPU_IS_LOST"]
        return any(lost in reason for reason in self.reasons.values())

    def as_dict(self) -> dict[str, Any]:
        users = self.users
        return {
            "uuid": self.uuid,
            "name": self.values.get("name"),
            "short_uuid": self.short_uuid,
            "instance_of": self.instance_of,
            "torch_uses": self.torch_uses,
            "gpm": self.values.get("sm_active_ratio") is not None,
            "tier": self.tier,
            **self.values,
            "processes": [one.as_dict() for one in users.processes] if users else None,
            "processes_known": users is not None and users.known,
            "reasons": self.reasons,
        }


def read_gpus(chosen: str | None, root: Path) -> Reading:
    """A tuple of GpuFacts.

    `chosen`: the UUID of the GPU that torch uses. `root`: the folder with the calibrations.
    """
    listed = each_gpu()
    if listed.value is None:
        return listed
    opened = [one.value for one in listed.value if one.value]
    gpus = [part for gpu in opened for part in (gpu, *instances(gpu))]
    facts = list(_observe(gpus, chosen, root))
    facts += [
        without_handle(number, one.reason)
        for number, one in enumerate(listed.value)
        if one.value is None
    ]
    return Reading(tuple(facts))


def _observe(gpus: list[Gpu], chosen: str | None, root: Path) -> Iterator[GpuFacts]:
    """All GPUs in the same window, in which nothing of ours runs."""
    watches = [gpm.watch(Device(uuid=uuid_of(gpu))) for gpu in gpus]
    start_us = busy.unix_us()
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch)
        time.sleep(OBSERVE_S if gpus else 0)
    for gpu, watch in zip(gpus, watches, strict=True):
        yield read_gpu(gpu, watch, chosen, root, start_us)


def read_gpu(gpu: Gpu, watch: Watch, chosen: str | None, root: Path, start_us: int) -> GpuFacts:
    facts = {name: read(gpu) for name, read in FACTS.items()}
    counters = watch.readings()
    ring = busy_since(gpu, start_us - int(RING_S * 1e6))
    # Not the ring for a whole GPU: a run that has just ended here is not somebody else's work.
    latest = latest_busy_ratio(gpu) if gpu.instance is None else ring
    sources = (busy_since(gpu, start_us), latest)
    neither = Reading(None, "; ".join(dict.fromkeys(one.reason for one in sources)))
    facts["kernel_busy_ratio"] = next((one for one in sources if one.value is not None), neither)
    listed = users(gpu)
    values = {name: one.value for name, one in facts.items()} | counters.values
    reasons = {name: one.reason for name, one in facts.items() if one.value is None}
    reasons |= counters.reasons
    uuid = uuid_of(gpu)
    if uuid is None:
        reasons["uuid"] = gpu.query("nvmlDeviceGetUUID").reason
    if listed.value is None:
        reasons["processes"] = listed.reason
    calibration = newest_calibration(root, uuid, values["name"])
    windows = [counters.values, {"kernel_busy_ratio": ring.value}]
    return GpuFacts(
        uuid=uuid,
        instance_of=None if gpu.instance is None else uuid_of(gpu.board),
        torch_uses=chosen is not None and uuid == chosen,
        tier=tier_of(windows, "cuda", calibration["peaks"] if calibration else None),
        calibration=calibration,
        values=values,
        reasons=reasons,
        users=listed.value,
    )


def without_handle(number: int, reason: str) -> GpuFacts:
    """A GPU that the driver does not open; not even its UUID is known."""
    names = [*FACTS, *gpm.COLUMNS, "kernel_busy_ratio"]
    why = f"number {number} in the driver's order: {reason}"
    reasons = dict.fromkeys([*names, "uuid", "processes"], why)
    return GpuFacts(uuid=None, values=dict.fromkeys(names), reasons=reasons)


def uuid_of(gpu: Gpu) -> str | None:
    uuid: str | None = text(gpu.query("nvmlDeviceGetUUID").value)
    return uuid


def busy_since(gpu: Gpu, start_us: int) -> Reading:
    """kernel_busy_ratio as the probe `busy` reads it, since a UNIX time."""
    if gpu.instance is not None:
        return Reading(None, busy.BOARD_ONLY)
    return busy.kernel_percentages(gpu, start_us, busy.unix_us()).map(busy.mean_ratio)


def memory(member: str) -> Callable[[Gpu], Reading]:
    return lambda gpu: memory_info(gpu).map(lambda memory: int(getattr(memory, member)))


def of_board(
    function: str, *constants: str, to: Callable[[Any], Any] = int
) -> Callable[[Gpu], Reading]:
    """Query the whole board, with pynvml's constants of these names as further arguments."""

    def read(gpu: Gpu) -> Reading:
        return gpu.board.query(function, *(getattr(gpu.nvml, name) for name in constants)).map(to)

    return read


def thousandth(value: int) -> float:
    return value / 1e3


def first_is_on(modes: tuple[int, ...]) -> bool:
    return bool(modes[0])


def mode_name(mode: int) -> str:
    return COMPUTE_MODES[mode] if 0 <= mode < len(COMPUTE_MODES) else f"unknown ({mode})"


FACTS: dict[str, Callable[[Gpu], Reading]] = {
    "name": lambda gpu: gpu.query("nvmlDeviceGetName").map(text),
    "compute_capability": of_board("nvmlDeviceGetCudaComputeCapability", to="{0[0]}.{0[1]}".format),
    "memory_total_bytes": memory("total"),
    "memory_free_bytes": memory("free"),
    "memory_used_bytes": memory("used"),
    "sm_clock_mhz": sm_clock_mhz,
    "max_sm_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
    "memory_clock_mhz": memory_clock_mhz,
    "max_memory_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    "clock_event_mask": clock_event_mask,
    "temperature_c": temperature_c,
    "temperature_limit_c": of_board(
        "nvmlDeviceGetTemperatureThreshold", "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"
    ),
    "power_w": power_w,
    "power_limit_w": of_board("nvmlDeviceGetEnforcedPowerLimit", to=thousandth),
    "energy_j": of_board("nvmlDeviceGetTotalEnergyConsumption", to=thousandth),
    "ecc_enabled": of_board("nvmlDeviceGetEccMode", to=first_is_on),
    "uncorrected_ecc_count": of_board(
        "nvmlDeviceGetTotalEccErrors", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"
    ),
    "persistence_enabled": of_board("nvmlDeviceGetPersistenceMode", to=bool),
    "compute_mode": of_board("nvmlDeviceGetComputeMode", to=mode_name),
    "mig_enabled": of_board("nvmlDeviceGetMigMode", to=first_is_on),
}
"""Clocks, power, temperature and errors are the board's also for an instance."""
