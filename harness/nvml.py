"""NVML, the driver's own counters: which GPU is meant, and one way of asking that gives a value or
the reason why there is none.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

WORDS = {
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
"""What NVML's errors (nvml.h, nvmlReturn_t) mean to a user."""

KNOWN_REASONS = (1 << 63) - 1
"""The highest bit says that a reason is unknown (nvml.h), which is nothing, and makes the mask too
large for readers of JSON.
"""

NO_GPU = "measured on the CPU, no GPU is watched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Whose counters are read. `uuid` as NVML writes it (GPU-... or MIG-...), None where no GPU is
    meant: NVML, CUDA and CUDA_VISIBLE_DEVICES number GPUs differently, so that an index can mean a
    stranger's GPU."""

    uuid: str | None = None


class Answer(NamedTuple):
    """What NVML said. `value` is None if and only if `reason` says why."""

    value: Any
    reason: str = ""


class Gpu:
    """A GPU, or an instance of one (MIG), that NVML answers for."""

    def __init__(self, handle: Any) -> None:
        self.nvml = _opened().value
        self.handle = handle
        self.board = self
        self.instance: int | None = None
        if self.ask("nvmlDeviceIsMigDeviceHandle").value:
            self.board = Gpu(self.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle").value)
            self.instance = self.ask("nvmlDeviceGetGpuInstanceId").value

    def ask(self, function: str, *arguments: Any, **options: Any) -> Answer:
        """Call a function of NVML that takes this GPU's handle first. Never raises."""
        return self.call(function, self.handle, *arguments, **options)

    def call(self, function: str, *arguments: Any, **options: Any) -> Answer:
        """Call any function of NVML. Never raises."""
        try:
            value = getattr(self.nvml, function)(*arguments, **options)
        except AttributeError:
            return Answer(None, f"{function}: nvidia-ml-py is too old to have it")
        except self.nvml.NVMLError as error:
            return Answer(None, f"{function}: {in_words(self.nvml, error)}")
        return (
            Answer(None, f"{function}: the driver gave no value")
            if value is None
            else Answer(value)
        )

    def words(self, code: int) -> str:
        """What a return code of NVML means."""
        return in_words(self.nvml, self.nvml.NVMLError(code))


def open_gpu(device: Device) -> Answer:
    """The Gpu of a device. NVML stays open until the process ends: opening it takes longer than
    asking it.
    """
    if device.uuid is None:
        return Answer(None, NO_GPU)
    opened = _opened()
    if opened.value is None:
        return opened
    nvml = opened.value
    try:
        return Answer(Gpu(nvml.nvmlDeviceGetHandleByUUID(device.uuid)))
    except nvml.NVMLError as error:
        return Answer(None, f"{device.uuid}: {in_words(nvml, error)}")


def temperature_c(gpu: Gpu) -> Answer:
    """Degrees Celsius of the die; by the newer call where the driver has it (the older one goes
    with CUDA 14).
    """
    newer = gpu.board.ask("nvmlDeviceGetTemperatureV", gpu.nvml.NVML_TEMPERATURE_GPU)
    return (
        newer
        if newer.value is not None
        else gpu.board.ask("nvmlDeviceGetTemperature", gpu.nvml.NVML_TEMPERATURE_GPU)
    )


def clock_event_reasons(gpu: Gpu) -> Answer:
    """Why the clock is not at its highest now, a bit mask (nvml.h, nvmlClocksEventReasons); older
    drivers know it by an older name.
    """
    found = gpu.board.ask("nvmlDeviceGetCurrentClocksEventReasons")
    if found.value is None:
        found = gpu.board.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    return found if found.value is None else Answer(int(found.value) & KNOWN_REASONS)


def used_bytes(gpu: Gpu) -> Answer:
    """All that is used on the device now, contexts and other processes included. Version 2, which
    leaves the driver's reserve out.
    """
    found = gpu.ask("nvmlDeviceGetMemoryInfo", version=getattr(gpu.nvml, "nvmlMemory_v2", None))
    return found if found.value is None else Answer(int(found.value.used))


def identity(device: "torch.device") -> Device:
    """The same GPU as NVML knows it: torch gives the UUID without the prefix that tells a whole GPU
    from an instance of one.
    """
    if device.type != "cuda":
        return Device()
    # here: the sampler of telemetry.py asks NVML too, and must not take torch's seconds and memory
    import torch

    bare = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    names = [bare] if bare.startswith(("GPU-", "MIG-")) else [f"GPU-{bare}", f"MIG-{bare}"]
    return next(
        (Device(uuid=name) for name in names if open_gpu(Device(uuid=name)).value),
        Device(uuid=names[0]),
    )


def each_gpu() -> Answer:
    """A list of Answers, one for each whole GPU in the driver's order: the Gpu, or why it cannot be
    asked. None is hidden by CUDA.
    """
    opened = _opened()
    if opened.value is None:
        return opened
    nvml = opened.value
    try:
        return Answer([_at(index) for index in range(nvml.nvmlDeviceGetCount())])
    except nvml.NVMLError as error:
        return Answer(None, in_words(nvml, error))


def _at(index: int) -> Answer:
    nvml = _opened().value
    try:
        return Answer(Gpu(nvml.nvmlDeviceGetHandleByIndex(index)))
    except nvml.NVMLError as error:
        return Answer(None, in_words(nvml, error))


def instances(gpu: Gpu) -> list[Gpu]:
    """The parts into which a GPU is divided (MIG), as far as they are shown to this process."""
    most = gpu.ask("nvmlDeviceGetMaxMigDeviceCount").value or 0
    found = [gpu.ask("nvmlDeviceGetMigDeviceHandleByIndex", index).value for index in range(most)]
    return [Gpu(handle) for handle in found if handle is not None]


def system_fact(function: str) -> Answer:
    """A fact of the driver, such as nvmlSystemGetDriverVersion."""
    opened = _opened()
    if opened.value is None:
        return opened
    nvml = opened.value
    try:
        return Answer(text(getattr(nvml, function)()))
    except (AttributeError, nvml.NVMLError) as error:
        return Answer(None, f"{function}: {in_words(nvml, error)}")


def text(value: Any) -> Any:
    """Older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def in_words(nvml: Any, error: Exception) -> str:
    """An NVML error as a user understands it."""
    code = getattr(error, "value", None)
    return next(
        (words for name, words in WORDS.items() if getattr(nvml, name, -1) == code), str(error)
    )


@cache
def _opened() -> Answer:
    """The binding, with NVML open."""
    try:
        import pynvml
    except ImportError:
        return Answer(None, "nvidia-ml-py is not installed: pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Answer(None, in_words(pynvml, error))
    return Answer(pynvml)
