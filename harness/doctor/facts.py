"""What doctor knows of this machine: of each GPU what the driver says, and what torch does with it.

A fact that cannot be read is None, with the reason beside it; nothing here raises or measures.
"""

import os
import resource
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ...impls._triton.ran_on_gpu import not_yet_run
from ...impls.shared.inductor import missing_for_compile
from ..devices.calibration_file import newest_calibration
from ..devices.environment import (
    available_bytes,
    collect,
    cudnn_path,
    fix_threads,
    other_accelerator,
    pick_device,
    shares_host_memory,
)
from ..devices.host import memory_limit, quota
from ..devices.load import Users, users
from ..devices.nvml import (
    BOARD_READINGS,
    Device,
    Gpu,
    Read,
    Reading,
    each_gpu,
    instances,
    latest_busy_ratio,
    memory_info,
    of_board,
    system_fact,
    text,
)
from ..devices.probes import Watch, busy, gpm
from ..process.command import git_commit
from ..rows.readings import tier_of

Facts = dict[str, Any]
"""By name. A GPU's `reasons` say why a fact is None."""

DRIVER_FILES = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
"""A loaded driver has them, also if its library is missing or refuses."""


def read_machine(root: Path) -> tuple[Facts, Facts, list[Facts]]:
    """As a run would find it: its environment as in run.json; that, and what else rules on the
    machine ask for; and each GPU and each instance of one. `root` has the calibrations; a GPU's
    facts have its newest.
    """
    fix_threads()
    device, why, cudnn = try_torch()
    environment = collect(device) | {"git": git_commit()}
    listed = read_gpus(environment["device_uuid"])
    gpus = listed.value or []
    for gpu in gpus:
        found = gpu["calibration"] = newest_calibration(root, gpu["uuid"], gpu["name"])
        gpu["tier"] = tier_of([gpu], "cuda", found["peaks"] if found else None)
    has_driver = listed.value is None and any(Path(file).exists() for file in DRIVER_FILES)
    version, no_version = system_fact("nvmlSystemGetDriverVersion")
    host = environment | {
        "why_not": why,
        "has_gpu": not why or bool(gpus) or has_driver,
        "built": f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA",
        "loaded_cudnn": cudnn,
        "listed": listed,
        "driver_version": version or no_version,
        "knows_driver": bool(version),
        "driver_cuda": system_fact("nvmlSystemGetCudaDriverVersion_v2"),
        "other": other_accelerator(),
        "missing_compiler": (missing_for_compile(device) or "").partition(": "),
        "kernels": not_yet_run(),
        "load": os.getloadavg()[0],
        "free_bytes": available_bytes(device),
        "shares_memory": device.type == "cuda" and shares_host_memory(device),
        "memory_limit": memory_limit(),
        "quota": quota(),
        "address_space_bytes": resource.getrlimit(resource.RLIMIT_AS)[1],
        "calibration": newest_calibration(root, None, environment["cpu"]),
    }
    return environment, host, gpus


# ---- torch ---------------------------------------------------------------------------------------


def try_torch() -> tuple[torch.device, str, Reading]:
    """The GPU that torch computes on, or the CPU and why; and cuDNN's version and file.

    A GPU that torch lists may still not work, so torch computes something on it.
    """
    cpu, no_cudnn = torch.device("cpu"), Reading(None, "no GPU to load it for")
    with warnings.catch_warnings(record=True) as caught:  # such as a driver that is too old
        warnings.simplefilter("always")
        device, why = pick_device("cuda")
    if device.type != "cuda":
        return cpu, first_line(caught[0].message) if caught else why, no_cudnn
    try:
        (torch.ones(64, 64, device=device) @ torch.ones(64, 64, device=device)).sum().item()
    except RuntimeError as error:
        return cpu, first_line(error), no_cudnn
    return device, "", load_cudnn(device)


def load_cudnn(device: torch.device) -> Reading:
    """By a convolution."""
    try:
        x = torch.ones(1, 8, 8, 8, device=device, dtype=torch.float16)
        torch.nn.functional.conv2d(x, x).sum().item()
        version = torch.backends.cudnn.version()
    except RuntimeError as error:
        return Reading(None, first_line(error))
    path = cudnn_path()
    return Reading((version, path)) if path else Reading(None, "a convolution ran without it")


def first_line(error: object) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0][:200]


# ---- GPUs ----------------------------------------------------------------------------------------

OBSERVE_S = 1.0  # counters need 0.1 s, the driver's busy time is of up to 1 s (nvml.h)
PROHIBITED = "prohibited"
COMPUTE_MODES = ("default", "exclusive thread", PROHIBITED, "exclusive process")
"""nvml.h, nvmlComputeMode_t."""


def read_gpus(chosen: str | None) -> Reading:
    """A list of Facts, all from the same window, in which nothing of ours runs.

    `chosen`: the UUID of the GPU that torch uses.
    """
    listed = each_gpu()
    if listed.value is None:
        return listed
    opened = [one.value for one in listed.value if one.value]
    gpus = [part for gpu in opened for part in (gpu, *instances(gpu))]
    watches = [gpm.watch(Device(uuid=uuid_of(gpu).value)) for gpu in gpus]
    with ExitStack() as window:
        for watch in watches:
            window.enter_context(watch)
        time.sleep(OBSERVE_S if gpus else 0)
    found = [
        as_facts(readings_of(gpu, watch), gpu, chosen)
        for gpu, watch in zip(gpus, watches, strict=True)
    ]
    for number, one in enumerate(listed.value):
        if one.value is None:  # the driver does not open it; not even its UUID is known
            why = Reading(None, f"number {number} in the driver's order: {one.reason}")
            found.append(as_facts(dict.fromkeys([*READINGS, *gpm.COLUMNS], why)))
    return Reading(found)


def readings_of(gpu: Gpu, counters: Watch) -> dict[str, Reading]:
    values, reasons = counters.readings()
    counted = {name: Reading(value, reasons.get(name, "")) for name, value in values.items()}
    return {name: read(gpu) for name, read in READINGS.items()} | counted


def as_facts(
    readings: dict[str, Reading], gpu: Gpu | None = None, chosen: str | None = None
) -> Facts:
    """As in --json, but for the `tier` of utilization that a run would have."""
    uuid = readings["uuid"].value
    users: Users | None = readings["processes"].value
    return {
        **{name: reading.value for name, reading in readings.items()},
        # enough to distinguish GPUs, whatever CUDA_VISIBLE_DEVICES is
        "short_uuid": "-".join(uuid.split("-")[:2]) if uuid else "GPU without UUID",
        "instance_of": uuid_of(gpu.board).value if gpu and gpu.instance is not None else None,
        "torch_uses": chosen is not None and uuid == chosen,
        "gpm": readings["sm_active_ratio"].value is not None,
        "processes": [asdict(one) for one in users.processes] if users else None,
        "processes_known": users is not None and users.known,
        "reasons": {name: one.reason for name, one in readings.items() if one.value is None},
    }


def kernel_busy_ratio(gpu: Gpu) -> Reading:
    return Reading(None, busy.BOARD_ONLY) if gpu.instance is not None else latest_busy_ratio(gpu)


def uuid_of(gpu: Gpu) -> Reading:
    return gpu.query("nvmlDeviceGetUUID").map(text)


def memory(member: str) -> Read:
    """None of what is used on a GPU that shares the host's memory."""
    return lambda gpu: memory_info(gpu).map(lambda memory: getattr(memory, member, None))


def first_mode(modes: Any) -> bool:
    """The present one; the other is that after a restart."""
    return bool(modes[0])


def mode_name(mode: int) -> str:
    return COMPUTE_MODES[mode] if 0 <= mode < len(COMPUTE_MODES) else f"unknown ({mode})"


def thousandth(number: int) -> float:
    return number / 1e3


READINGS: dict[str, Read] = {
    "uuid": uuid_of,
    "name": lambda gpu: gpu.query("nvmlDeviceGetName").map(text),
    "compute_capability": of_board("nvmlDeviceGetCudaComputeCapability", to="{0[0]}.{0[1]}".format),
    "memory_total_bytes": memory("total"),
    "memory_free_bytes": memory("free"),
    "memory_used_bytes": memory("used"),
    **BOARD_READINGS,
    "max_sm_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", constants=["NVML_CLOCK_SM"]),
    "max_memory_clock_mhz": of_board("nvmlDeviceGetMaxClockInfo", constants=["NVML_CLOCK_MEM"]),
    "temperature_limit_c": of_board(
        "nvmlDeviceGetTemperatureThreshold", constants=["NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"]
    ),
    "power_limit_w": of_board("nvmlDeviceGetEnforcedPowerLimit", to=thousandth),
    "energy_j": of_board("nvmlDeviceGetTotalEnergyConsumption", to=thousandth),
    "ecc_enabled": of_board("nvmlDeviceGetEccMode", to=first_mode),
    "uncorrected_ecc_count": of_board(
        "nvmlDeviceGetTotalEccErrors",
        constants=["NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"],
    ),
    "persistence_enabled": of_board("nvmlDeviceGetPersistenceMode", to=bool),
    "compute_mode": of_board("nvmlDeviceGetComputeMode", to=mode_name),
    "mig_enabled": of_board("nvmlDeviceGetMigMode", to=first_mode),
    "processes": users,
    "kernel_busy_ratio": kernel_busy_ratio,
}
"""Clocks, power, temperature and errors are the board's also for an instance."""
