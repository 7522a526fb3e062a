"""Which device a run here would measure, and its memory, without importing torch if possible."""

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from ..files.errors import EnvironmentUnmet
from .cpu import cpu_name
from .free_memory import host_available_bytes
from .nvml import Gpu, each_gpu, memory_info, text


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

    Raises EnvironmentUnmet if there is no such device.
    """
    try:
        torch_version = version("torch")
    except PackageNotFoundError:
        raise EnvironmentUnmet("torch is not installed; wanted it, see README.md") from None
    if requested == "cpu" or torch_version.endswith("+cpu"):
        if requested == "cuda":
            raise EnvironmentUnmet(
                "no cuda device: torch was built without CUDA; try with --device cpu"
            )
        return _host(torch_version)
    gpu = _gpu(torch_version)
    if gpu is None and requested == "cuda":
        raise EnvironmentUnmet("no cuda device: torch finds none; try with --device cpu")
    return gpu or _host(torch_version)


def _host(torch_version: str) -> ThisDevice:
    name = cpu_name()
    facts = {"cpu": name, "torch": torch_version}
    return ThisDevice("cpu", name or "cpu", facts, host_available_bytes(), "what is free here now")


def _gpu(torch_version: str) -> ThisDevice | None:
    """The only GPU of this machine, or the one that torch would take of several."""
    found = each_gpu().value or []
    if len(found) == 1 and not os.environ.get("CUDA_VISIBLE_DEVICES") and found[0].value:
        gpu = found[0].value
        uuid = text(gpu.query("nvmlDeviceGetUUID").value)
        name = text(gpu.query("nvmlDeviceGetName").value)
    else:
        import torch

        if not torch.cuda.is_available():
            return None
        from .nvml import nvml_device, open_gpu

        device = torch.device("cuda", torch.cuda.current_device())
        known = nvml_device(device)
        uuid, name = known.uuid, torch.cuda.get_device_properties(device).name
        gpu = open_gpu(known).value
    facts = {"device_uuid": uuid, "torch": torch_version}
    return ThisDevice("cuda", str(name), facts, _memory(gpu), "the GPU's memory")


def _memory(gpu: Gpu | None) -> int | None:
    memory = memory_info(gpu).value if gpu is not None else None
    return None if memory is None else int(memory.total)
