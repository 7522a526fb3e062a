"""NVML, the driver's management library: find a GPU, query it for a value or the reason for none.

Queries never raise: a driver that refuses, an old driver and a machine without one are reasons.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from .host import CHOICE, host_available_bytes, host_total_bytes

if TYPE_CHECKING:
    import torch

ERROR_TEXTS = {
    "NVML_ERROR_NOT_SUPPORTED": "this GPU does not offer it",
    "NVML_ERROR_NO_PERMISSION": "this user may not read it",
    "NVML_ERROR_FUNCTION_NOT_FOUND": "the driver is too old to have it",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH": "the driver is too old for this form of it",
    "NVML_ERROR_GPU_IS_LOST": "the GPU is lost; restart the machine",
    "NVML_ERROR_NOT_FOUND": "there is none",
    "NVML_ERROR_DRIVER_NOT_LOADED": "no NVIDIA driver is loaded",
    "NVML_ERROR_LIBRARY_NOT_FOUND": "no NVIDIA driver is installed (libnvidia-ml.so.1)",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": (
        "the driver's library and kernel module differ in version; restart the machine"
    ),
}
"""What NVML's return codes (nvml.h, nvmlReturn_t) mean to a user."""

KNOWN_REASONS = (1 << 63) - 1
"""Without the highest bit, "unknown reason" (nvml.h), which is too large for readers of JSON."""

THROTTLED_FIELDS = {
    "power_throttled_s": 74,
    "thermal_throttled_s": 75,
    "sync_boost_throttled_s": 76,
}
"""nvml.h, NVML_FI_DEV_PERF_POLICY_POWER, _THERMAL and _SYNC_BOOST, in ns.

Only ids that never changed their meaning: the ids of the newer clock event counters meant other
quantities in other driver branches.
"""
NS = 1e9

SPLIT = (
    "MIG splits this GPU, and CUDA does not say on which part it runs; name one in"
    " CUDA_VISIBLE_DEVICES (MIG-...)"
)
NO_GPU = "measured on the CPU, no GPU is watched"


class Reading(NamedTuple):
    """A value, or None and the reason why there is none."""

    value: Any
    reason: str = ""

    def map(self, convert: Callable[[Any], Any]) -> "Reading":
        """The converted value, or the same reason."""
        return self if self.value is None else Reading(convert(self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The GPU to read, by its UUID as NVML writes it (GPU-... or MIG-...); None: no GPU.

    No index: NVML, CUDA and CUDA_VISIBLE_DEVICES number GPUs differently.
    """

    uuid: str | None = None


class Gpu:
    """A GPU or an instance of one (MIG). `board`: the whole GPU; `instance`: the instance's id."""

    def __init__(self, handle: Any) -> None:
        self.nvml = _nvml().value
        self.handle = handle
        self.board = self
        self.instance: int | None = None
        if self.query("nvmlDeviceIsMigDeviceHandle").value:
            self.board = Gpu(self.query("nvmlDeviceGetDeviceHandleFromMigDeviceHandle").value)
            self.instance = self.query("nvmlDeviceGetGpuInstanceId").value

    def query(self, function: str, *arguments: Any, **options: Any) -> Reading:
        """Call a function of NVML whose first parameter is this GPU's handle."""
        return call(function, self.handle, *arguments, **options)

    def error_text(self, code: int) -> str:
        """What a return code of NVML means."""
        return _error_text(self.nvml, self.nvml.NVMLError(code))


def call(function: str, *arguments: Any, **options: Any) -> Reading:
    """Call a function of NVML."""
    nvml, reason = _nvml()
    if nvml is None:
        return Reading(None, reason)
    try:
        value = getattr(nvml, function)(*arguments, **options)
    except AttributeError:
        return Reading(None, f"{function}: nvidia-ml-py is too old to have it")
    except nvml.NVMLError as error:
        return Reading(None, f"{function}: {_error_text(nvml, error)}")
    return Reading(value, f"{function}: the driver gave no value" if value is None else "")


def plausible(column: str, reading: Reading) -> Reading:
    """The reading of a column, or why it is no value: drivers give shares of more than all
    (Syllo/nvtop#110), and numbers below 0.
    """
    value, percent = reading.value, column.endswith("_ratio")
    if not isinstance(value, int | float) or (0 <= value <= (1 if percent else inf)):
        return reading
    return Reading(None, f"the driver gave {f'{100 * value:.4g} %' if percent else value}")


def without_function(reason: str) -> str:
    """A reason without the name of NVML's function."""
    function, _, text = reason.partition(": ")
    return text if function.startswith("nvml") and text else reason


# ---- GPUs ----------------------------------------------------------------------------------------


def open_gpu(device: Device) -> Reading:
    """The Gpu of a device; none if MIG splits it, since work runs on a part of it and the board's
    counters are not that part's. NVML stays open until the process ends: opening it is slow.
    """
    if device.uuid is None:
        return Reading(None, NO_GPU)
    gpu, reason = call("nvmlDeviceGetHandleByUUID", device.uuid).map(Gpu)
    if gpu is not None and gpu.board is gpu and (gpu.query("nvmlDeviceGetMigMode").value or [0])[0]:
        return Reading(None, SPLIT)
    return Reading(gpu, reason.replace("nvmlDeviceGetHandleByUUID", device.uuid))


def nvml_device(device: "torch.device") -> Device:
    """A torch device as NVML knows it.

    torch gives the UUID without the prefix that distinguishes a GPU from an instance (MIG), and for
    an instance maybe that of its GPU. An instance that the user chose is known by its own.
    """
    if device.type != "cuda":
        return Device()
    # Imported here: doctor reads NVML without torch too, and importing it costs seconds.
    import torch

    bare = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    names = [bare] if bare.startswith(("GPU-", "MIG-")) else [f"GPU-{bare}", f"MIG-{bare}"]
    chosen = os.environ.get(CHOICE, "")
    if chosen.startswith("MIG-"):
        names.append(chosen)
    devices = [Device(uuid=name) for name in names]
    return next((one for one in devices if open_gpu(one).value), devices[0])


def each_gpu() -> Reading:
    """A list of one Reading per GPU, in the driver's order: the Gpu, or why it cannot be opened.

    CUDA_VISIBLE_DEVICES hides none.
    """
    return call("nvmlDeviceGetCount").map(
        lambda count: [call("nvmlDeviceGetHandleByIndex", i).map(Gpu) for i in range(count)]
    )


def has_gpu() -> bool:
    """Whether the driver lists a GPU. With CUDA_VISIBLE_DEVICES the user has chosen: then not."""
    return CHOICE not in os.environ and bool(each_gpu().value)


def instances(gpu: Gpu) -> list[Gpu]:
    """The instances (MIG) of a GPU that this process can see."""
    most = gpu.query("nvmlDeviceGetMaxMigDeviceCount").value or 0
    found = [gpu.query("nvmlDeviceGetMigDeviceHandleByIndex", i).value for i in range(most)]
    return [Gpu(handle) for handle in found if handle is not None]


# ---- quantities, each with its unit; clocks, temperature and power are the whole board's ---------


Read = Callable[[Gpu], Reading]


def of_board(
    *functions: str, constants: Sequence[str] = (), to: Callable[[Any], Any] = int
) -> Read:
    """Ask for the whole board, by the first of these functions that gives a value: newer and older
    drivers have other ones. `constants`: further arguments, by their names in pynvml.
    """

    def read(gpu: Gpu) -> Reading:
        arguments = [getattr(gpu.nvml, name) for name in constants]
        for function in functions:
            found = gpu.board.query(function, *arguments)
            if found.value is not None:
                break
        return found.map(to)

    return read


sm_clock_mhz = of_board("nvmlDeviceGetClockInfo", constants=["NVML_CLOCK_SM"])
temperature_c = of_board(  # CUDA 14 removes the older one
    *("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"), constants=["NVML_TEMPERATURE_GPU"]
)
clock_event_mask = of_board(
    *("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
    to=lambda bits: int(bits) & KNOWN_REASONS,
)
"""Why the clock is below its maximum now, as bits (nvml.h, nvmlClocksEventReasons)."""

BOARD_READINGS: dict[str, Read] = {
    "sm_clock_mhz": sm_clock_mhz,
    "memory_clock_mhz": of_board("nvmlDeviceGetClockInfo", constants=["NVML_CLOCK_MEM"]),
    "temperature_c": temperature_c,
    "clock_event_mask": clock_event_mask,
    "power_w": of_board("nvmlDeviceGetPowerUsage", to=lambda milliwatt: milliwatt / 1e3),
}


def throttled_s(gpu: Gpu) -> dict[str, Reading]:
    """For how long the clocks were held down until now, by cause."""
    fields = gpu.board.query("nvmlDeviceGetFieldValues", [*THROTTLED_FIELDS.values()])
    if fields.value is None:
        return dict.fromkeys(THROTTLED_FIELDS, fields)
    found = {}
    for name, field in zip(THROTTLED_FIELDS, fields.value, strict=True):
        if field.nvmlReturn == gpu.nvml.NVML_SUCCESS:
            found[name] = Reading(field.value.ullVal / NS)
        else:
            reason = f"field {field.fieldId}: {gpu.error_text(field.nvmlReturn)}"
            found[name] = Reading(None, reason)
    return found


class SharedMemory(NamedTuple):
    """The host's, of a GPU that has none of its own (GB10, Jetson)."""

    total: int
    free: int


def memory_info(gpu: Gpu) -> Reading:
    """Version 2 of NVML's struct: `used` leaves out what the driver reserves. A SharedMemory of a
    GPU whose driver has no figures.
    """
    found = gpu.query("nvmlDeviceGetMemoryInfo", version=getattr(gpu.nvml, "nvmlMemory_v2", None))
    not_offered = ERROR_TEXTS["NVML_ERROR_NOT_SUPPORTED"] in found.reason
    if not_offered and gpu.instance is None:
        return Reading(SharedMemory(host_total_bytes(), host_available_bytes()))
    return found


def used_bytes(gpu: Gpu) -> Reading:
    """Memory in use on the device now by all processes, contexts included."""
    found = memory_info(gpu)
    if isinstance(found.value, SharedMemory):
        return Reading(None, "the GPU shares the host's memory")
    return found.map(lambda memory: int(memory.used))


def latest_busy_ratio(gpu: Gpu) -> Reading:
    """The driver's latest figure for the share of time in which any kernel ran."""
    return gpu.query("nvmlDeviceGetUtilizationRates").map(lambda percent: percent.gpu / 100)


def system_fact(function: str) -> Reading:
    """A fact about the driver, such as nvmlSystemGetDriverVersion."""
    return call(function).map(text)


def text(value: Any) -> Any:
    """Older bindings return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _error_text(nvml: Any, error: Exception) -> str:
    code = getattr(error, "value", None)
    texts = (text for name, text in ERROR_TEXTS.items() if getattr(nvml, name, -1) == code)
    return next(texts, str(error))


@cache
def _nvml() -> Reading:
    """The module pynvml, with NVML open."""
    try:
        import pynvml
    except ImportError:
        return Reading(None, "nvidia-ml-py is not installed: pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Reading(None, _error_text(pynvml, error))
    return Reading(pynvml)
