"""Put a fake GPU behind torch.cuda.

What torch.cuda has in Python stays and runs; the functions of its C library are replaced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from .gpu import FakeGpu, event_class, graph_class, stream_class
from .tensors import OnGpu, Placement, SaysItIs


class Generator(torch.Generator):
    """Of the fake GPU, or as torch's."""

    kind: str

    def __new__(cls, device: Any = None) -> "Generator":
        made = super().__new__(cls, "cpu")
        made.kind = "cpu" if device is None else torch.device(device).type
        return made


@contextmanager
def fake_cuda(gpu: FakeGpu | None = None) -> Iterator[FakeGpu]:
    """Meanwhile torch finds this GPU, in this thread."""
    gpu = gpu or FakeGpu()
    placement = Placement()
    with pytest.MonkeyPatch.context() as patch:
        _install(patch, gpu)
        with OnGpu(gpu, placement), SaysItIs(gpu, placement):
            yield gpu


def _install(patch: pytest.MonkeyPatch, gpu: FakeGpu) -> None:
    new_pool = partial(next, zip(repeat(0), count(1), strict=False))
    for name, function in _of_c(gpu).items():
        patch.setattr(torch._C, name, function, raising=False)
    cuda: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "_initialized": True,
        "device_count": lambda: 1,
        "_exchange_device": lambda index: 0,
        "_maybe_exchange_device": lambda index: 0,
        "_get_device_properties": lambda index: gpu.properties(),
        "default_generators": (torch.Generator(),),
        "cudart": lambda: SimpleNamespace(
            cudaMemGetInfo=lambda index: (gpu.memory.free_bytes, gpu.memory.total_bytes)
        ),
        "Stream": stream_class(gpu),
        "Event": event_class(gpu),
        "CUDAGraph": graph_class(gpu, new_pool),
        "graph_pool_handle": new_pool,
    }
    for name, value in cuda.items():
        patch.setattr(torch.cuda, name, value, raising=False)
    patch.setattr(torch.cuda.graph, "default_capture_stream", None)
    patch.setattr(torch, "Generator", Generator)
    patch.setattr(torch.version, "cuda", "13.0")


def _of_c(gpu: FakeGpu) -> dict[str, Any]:
    """By their names in torch._C."""

    def set_stream(*, stream_id: int, device_index: int, device_type: int) -> None:
        gpu.current = gpu.timelines[stream_id]

    def set_fraction(fraction: float, index: int) -> None:
        gpu.memory.fraction = fraction

    return {
        "_cuda_getDeviceCount": lambda: 1,
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda index: None,
        "_cuda_synchronize": gpu.synchronize,
        "_cuda_sleep": gpu.sleep,
        "_cuda_getCurrentStream": lambda index: (gpu.current.number, 0, 1),
        "_cuda_setStream": set_stream,
        "_cuda_emptyCache": gpu.memory.empty_cache,
        "_host_emptyCache": lambda: None,
        "_cuda_memoryStats": lambda index: gpu.memory.statistics(),
        "_cuda_resetPeakMemoryStats": lambda index: gpu.memory.reset_peak(),
        "_cuda_memorySnapshot": lambda _: gpu.memory.snapshot(),
        "_cuda_getAllocatorBackend": lambda: gpu.memory.backend,
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_endAllocateToPool": lambda _, pool: gpu.memory.end_pool(pool),
        "_cuda_releasePool": lambda _, pool: None,
        "_cuda_isCurrentStreamCapturing": lambda: gpu.capture is not None,
        "_cuda_getCurrentRawStream": lambda index: gpu.current.number,
    }
