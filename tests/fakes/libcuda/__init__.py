"""Triton's own launcher over a driver that computes nothing: what it tells a GPU of capability 9.0.

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
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

INCLUDE = Path(triton.__file__).parent / "backends/nvidia/include"
ITEM_BYTES = {6: 2, 7: 4, 9: 2}  # of CUtensorMapDataType: fp16, fp32, bf16
SWIZZLED_BYTES = {1: 32, 2: 64, 3: 128}  # of CUtensorMapSwizzle: the widest row of a box
SHARED_BYTES, MOST_THREADS = 227 << 10, 1024  # of a block
BYTES = {"b8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "f32": 4, "b64": 8, "u64": 8}
_PARAMETER = re.compile(r"\.param\s+(?:\.align \d+ )?\.(\w+)\s[^,\n]*?(?:\[(\d+)\])?,?$", re.M)


class FakeLibcuda:
    """Loaded in place of NVIDIA's, and Triton's active driver."""

    def __init__(self, folder: Path) -> None:
        """Builds it in `folder`."""
        library = folder / "libcuda.so.1"
        source = Path(__file__).with_name("libcuda.c")
        named = ("-shared", "-fPIC", f"-Wl,-soname,{library.name}", f"-I{INCLUDE}")
        subprocess.run(["cc", *named, "-o", str(library), str(source)], check=True)
        os.environ["TRITON_LIBCUDA_PATH"] = str(folder)
        self.c = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        self.c.fake_noted.restype = ctypes.c_char_p
        driver.set_active(_driver())

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

    def break_after(self, launches: int) -> None:
        """After so many, and in the next one, every call fails: an illegal memory access."""
        self.c.fake_break_after(launches)


def _driver() -> Any:
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
            return 9, 0

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

    return OfFake()


def parameter_bytes(ptx: str) -> list[int]:
    """Of each parameter of the entry that the PTX declares."""
    entry = ptx[ptx.index(".entry") :]
    found = _PARAMETER.findall(entry[: entry.index("\n)")])
    return [int(count) if count else BYTES[kind] for kind, count in found]


def illegal(one: Mapping[str, Any]) -> Iterator[str]:
    """What cuTensorMapEncodeTiled refuses in a map (CUDA Driver API, Tensor Map Object Management)."""
    item, inner = ITEM_BYTES[one["type"]], one["box"][0] * ITEM_BYTES[one["type"]]
    rules = {
        "the map is at a multiple of 64 bytes": one["aligned"],
        "the address is a multiple of 16": one["address"] % 16 == 0,
        "1 to 5 dimensions": 1 <= one["rank"] <= 5,
        "dimensions from 1 to 2**32": all(1 <= size <= 2**32 for size in one["dimensions"]),
        "strides in multiples of 16": all(stride % 16 == 0 for stride in one["strides"]),
        "strides above 0 and below 2**40": all(0 < stride < 2**40 for stride in one["strides"]),
        "boxes from 1 to 256": all(1 <= size <= 256 for size in one["box"]),
        "element strides from 1 to 8": all(1 <= step <= 8 for step in one["steps"]),
        "a row of the box in multiples of 16 bytes": inner % 16 == 0,
        "a row of the box within the swizzle": inner <= SWIZZLED_BYTES.get(one["swizzle"], inner),
        "not interleaved": one["interleave"] == 0,
        "rows that do not overlap": not one["strides"]
        or one["strides"][0] >= one["dimensions"][0] * item,
    }
    return (rule for rule, holds in rules.items() if not holds)


def unlaunchable(one: Mapping[str, Any]) -> Iterator[str]:
    """What cuLaunchKernelEx refuses on compute capability 9.0."""
    x, y, z = one["block"]
    rules = {
        "1 to 2**31 - 1 blocks": 1 <= one["grid"][0] < 2**31 and one["grid"][1:] == [1, 1],
        "whole warps, up to 1024 threads": x % 32 == 0 and x * y * z <= MOST_THREADS,
        "shared memory as asked for": one["shared"] <= max(48 << 10, one["dynamic"]),
        "shared memory of 227 KiB": one["shared"] <= SHARED_BYTES,
    }
    return (rule for rule, holds in rules.items() if not holds)
