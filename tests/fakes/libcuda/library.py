"""Triton's own launcher over a driver that computes nothing: what it tells a GPU .

    cuda = FakeLibcuda(folder)                 # before anything asks triton for its driver
    cuda.expect(ptx)                           # whose parameters the next launches have
    launch()
    maps, launches = cuda.told()
    assert [rule for one in maps for rule in illegal(one)] == []

Imports triton, and needs a C compiler: a process of its own.
"""

import ctypes
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from .rules import SHARED_BYTES, parameter_bytes

INCLUDE = Path(triton.__file__).parent / "backends/nvidia/include"


class FakeLibcuda:
    """Loaded in place of NVIDIA's, and Triton's active driver."""

    def __init__(self, folder: Path, major: int = 9) -> None:
        """Builds it in `folder`, for a GPU of compute capability `major`.0."""
        library = folder / "libcuda.so.1"
        source = Path(__file__).with_name("libcuda.c")
        named = ("-shared", "-fPIC", f"-Wl,-soname,{library.name}", f"-I{INCLUDE}")
        subprocess.run(["cc", *named, "-o", str(library), str(source)], check=True)
        os.environ["TRITON_LIBCUDA_PATH"] = str(folder)
        self.c = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.c.fake_noted.restype = ctypes.c_char_p
        self.c.fake_gpu(major, SHARED_BYTES[major])
        driver.set_active(_driver(major))

    def expect(self, ptx: str) -> int:
        """The number of parameters that the entry declares, with those that the launcher adds."""
        sizes = parameter_bytes(ptx)
        self.c.fake_parameters(len(sizes), (ctypes.c_int * len(sizes))(*sizes))
        return len(sizes)

    def told(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Tensor maps and launches since the last time."""
        noted = [json.loads(line) for line in self.c.fake_noted().decode().splitlines()]
        self.c.fake_forget()
        return [one for one in noted if "map" in one], [one for one in noted if "grid" in one]

    def break_in(self, launches: int) -> None:
        """From the launch of this number on, 1 for the next, every call fails: an illegal memory
        access. -1: none.
        """
        self.c.fake_break_in(launches)


def _driver(major: int) -> Any:
    """Triton's for CUDA, which asks this library and not torch for the device."""
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils

    class OfFake(CudaDriver):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            self.utils, self.launcher_cls = CudaUtils(), CudaLauncher

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _device: int) -> int:
            return 0

        def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
            return major, 0

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 10 * major, 32)

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

    return OfFake()
