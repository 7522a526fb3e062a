"""Which device a run here would measure, and its memory, without importing torch if possible."""

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from ..files.errors import EnvironmentUnmet, option
from .host import CHOICE, cpu_name, host_available_bytes
from .nvml import Gpu, SharedMemory, each_gpu, has_gpu, memory_info, nvml_device, open_gpu, text

NO_TORCH = (
    "torch is not installed; measuring needs it, reading results does not; README.md, Install, says"
    " which to take"
)


class ThisDevice(NamedTuple):
    """`kind`: cpu or cuda. `facts`: what run.json's environment says of it, torch's version too.

    `memory_bytes`: of a GPU all, of a host what is free now; None if it is not known.
    """

    kind: str
    name: str
    facts: Mapping[str, Any]
    memory_bytes: int | None
    memory_from: str


def this_device(requested: str | None) -> ThisDevice:
    """`requested`: cpu, cuda, auto or None, which take a GPU if torch can use one.

    Raises EnvironmentUnmet if there is no such device, or none that attnbench can measure.
    """
    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        raise EnvironmentUnmet(NO_TORCH) from None
    without_cuda = torch_version.endswith("+cpu")
    if requested == "cpu" or (without_cuda and requested != "cuda" and not has_gpu()):
        return _host(torch_version)
    return (None if without_cuda else _only_gpu(torch_version)) or _of_torch(
        requested or "auto", torch_version
    )


def no_device(requested: str | None, why: str) -> str:
    """`no cuda device: torch finds none`; of auto, why there is none."""
    return f"no cuda device: {why}" if requested == "cuda" else why


def _host(torch_version: str) -> ThisDevice:
    name = cpu_name()
    facts = {"cpu": name, "torch": torch_version}
    return ThisDevice("cpu", name or "cpu", facts, host_available_bytes(), "what is free here now")


def _only_gpu(torch_version: str) -> ThisDevice | None:
    """The GPU of this machine; None if there are several or none, or the user chose."""
    found = each_gpu().value or []
    if len(found) != 1 or os.environ.get(CHOICE) or not found[0].value:
        return None
    gpu = found[0].value
    uuid = text(gpu.query("nvmlDeviceGetUUID").value)
    name = text(gpu.query("nvmlDeviceGetName").value)
    return _cuda(gpu, uuid, name, torch_version)


def _of_torch(requested: str, torch_version: str) -> ThisDevice:
    """Raises EnvironmentUnmet."""
    import torch

    from .environment import pick_device

    device, why = pick_device(requested)
    if why:
        raise EnvironmentUnmet(f"{no_device(requested, why)}; try with {option('device', 'cpu')}")
    if device.type == "cpu":
        return _host(torch_version)
    known = nvml_device(device)
    name = torch.cuda.get_device_properties(device).name
    return _cuda(open_gpu(known).value, known.uuid, name, torch_version)


def _cuda(gpu: Gpu | None, uuid: str | None, name: str, torch_version: str) -> ThisDevice:
    facts = {"device_uuid": uuid, "torch": torch_version}
    memory = memory_info(gpu).value if gpu is not None else None
    total = None if memory is None else int(memory.total)
    shared = isinstance(memory, SharedMemory)
    whose = "the host's memory, which the GPU shares" if shared else "the GPU's memory"
    return ThisDevice("cuda", str(name), facts, total, whose)
