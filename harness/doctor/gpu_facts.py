"""NVML's facts about each GPU and each instance of one (MIG), or the reasons why there are none."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..devices.calibration_file import newest_calibration
from ..devices.gpu_users import Users, users
from ..devices.nvml import (
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
    sm_clock_mhz,
    temperature_c,
    text,
)
from ..devices.probes import Readings, busy, gpm
from ..rows.readings import Tier, tier_of

OBSERVE_S = 1.0
"""Counters need 0.1 s (nvml.h); the ring of a driver that was just loaded needs a few samples."""
COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
"""nvml.h, nvmlComputeMode_t."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """A GPU or an instance. `readings`: each fact by its name, with the reason if there is none.
    `tier`: a run's kind of utilization.
    """

    readings: Mapping[str, Reading]
    calibration: dict[str, Any] | None = None
    instance_of: str | None = None
    torch_uses: bool = False
    tier: Tier = "host"

    def value(self, name: str) -> Any:
        return self.readings[name].value

    @property
    def short_uuid(self) -> str:
        """Enough to distinguish GPUs, whatever CUDA_VISIBLE_DEVICES is."""
        uuid = self.value("uuid")
        return "-".join(uuid.split("-")[:2]) if uuid else "GPU without UUID"

    @property
    def lost(self) -> bool:
        lost = ERROR_TEXTS["NVML_ERROR_GPU_IS_LOST"]
        return any(lost in reading.reason for reading in self.readings.values())

    def as_dict(self) -> dict[str, Any]:
        users: Users | None = self.value("processes")
        return {
            **{name: reading.value for name, reading in self.readings.items()},
            "short_uuid": self.short_uuid,
            "instance_of": self.instance_of,
            "torch_uses": self.torch_uses,
            "gpm": self.value("sm_active_ratio") is not None,
            "tier": self.tier,
            "processes": [asdict(one) for one in users.processes] if users else None,
            "processes_known": users is not None and users.known,
            "reasons": {
                name: reading.reason
                for name, reading in self.readings.items()
                if reading.value is None
            },
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
    watches = [gpm.watch(Device(uuid=uuid_of(gpu).value)) for gpu in gpus]
    start_us = busy.unix_us()
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch)
        time.sleep(OBSERVE_S if gpus else 0)
    for gpu, watch in zip(gpus, watches, strict=True):
        counters = watch.readings()
        yield read_gpu(gpu, counters, chosen, root, start_us)


def read_gpu(
    gpu: Gpu, counters: Readings, chosen: str | None, root: Path, start_us: int
) -> GpuFacts:
    readings = {name: read(gpu) for name, read in FACTS.items()}
    for name, value in counters.values.items():
        readings[name] = Reading(value, counters.reasons.get(name, ""))
    readings["kernel_busy_ratio"] = kernel_busy_ratio(gpu, start_us)
    uuid = readings["uuid"].value
    calibration = newest_calibration(root, uuid, readings["name"].value)
    values = {name: reading.value for name, reading in readings.items()}
    return GpuFacts(
        readings=readings,
        instance_of=None if gpu.instance is None else uuid_of(gpu.board).value,
        torch_uses=chosen is not None and uuid == chosen,
        tier=tier_of([values], "cuda", calibration["peaks"] if calibration else None),
        calibration=calibration,
    )


def without_handle(number: int, reason: str) -> GpuFacts:
    """A GPU that the driver does not open; not even its UUID is known."""
    why = Reading(None, f"number {number} in the driver's order: {reason}")
    return GpuFacts(readings=dict.fromkeys([*FACTS, *gpm.COLUMNS, "kernel_busy_ratio"], why))


def uuid_of(gpu: Gpu) -> Reading:
    return gpu.query("nvmlDeviceGetUUID").map(text)


def kernel_busy_ratio(gpu: Gpu, start_us: int) -> Reading:
    """As the probe `busy` reads it, since a UNIX time; else the driver's latest figure."""
    if gpu.instance is not None:
        return Reading(None, busy.BOARD_ONLY)
    since = busy.kernel_percentages(gpu, start_us, busy.unix_us()).map(busy.mean_ratio)
    return latest_busy_ratio(gpu) if since.value is None else since


def memory(member: str) -> Callable[[Gpu], Reading]:
    """None of what is used on a GPU that shares the host's memory."""
    return lambda gpu: memory_info(gpu).map(lambda memory: getattr(memory, member, None))


def of_board(
    function: str, *constants: str, to: Callable[[Any], Any] = int
) -> Callable[[Gpu], Reading]:
    """Query the whole board, with pynvml's constants of these names as further arguments."""

    def read(gpu: Gpu) -> Reading:
        return gpu.board.query(function, *(getattr(gpu.nvml, name) for name in constants)).map(to)

    return read


def mode_name(mode: int) -> str:
    return COMPUTE_MODES[mode] if 0 <= mode < len(COMPUTE_MODES) else f"unknown ({mode})"


FACTS: dict[str, Callable[[Gpu], Reading]] = {
    "uuid": uuid_of,
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
    "power_w": of_board("nvmlDeviceGetPowerUsage", to=lambda milli: milli / 1e3),
    "power_limit_w": of_board("nvmlDeviceGetEnforcedPowerLimit", to=lambda milli: milli / 1e3),
    "energy_j": of_board("nvmlDeviceGetTotalEnergyConsumption", to=lambda milli: milli / 1e3),
    "ecc_enabled": of_board("nvmlDeviceGetEccMode", to=lambda modes: bool(modes[0])),
    "uncorrected_ecc_count": of_board(
        "nvmlDeviceGetTotalEccErrors", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"
    ),
    "persistence_enabled": of_board("nvmlDeviceGetPersistenceMode", to=bool),
    "compute_mode": of_board("nvmlDeviceGetComputeMode", to=mode_name),
    "mig_enabled": of_board("nvmlDeviceGetMigMode", to=lambda modes: bool(modes[0])),
    "processes": users,
}
"""Clocks, power, temperature and errors are the board's also for an instance."""
