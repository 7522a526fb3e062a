"""Occupancy by hand, by NVIDIA's published examples, and by NVIDIA's own calculator in C."""

import ctypes
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from attnbench.harness.audit.occupancy import (
    ARCHITECTURES,
    KIB,
    Block,
    Capability,
    Limit,
    Occupancy,
    occupancy,
)

CALCULATOR = r"""
#include <limits.h>
#include <string.h>
#include "cuda_occupancy.h"

int blocks(int major, int minor, int sm_threads, size_t sm_shared, int threads, int registers,
           size_t shared, int *limiting) {
    struct cudaOccDeviceProp gpu;
    struct cudaOccFuncAttributes kernel;
    struct cudaOccDeviceState state;
    struct cudaOccResult result;
    memset(&gpu, 0, sizeof gpu), memset(&kernel, 0, sizeof kernel);
    memset(&state, 0, sizeof state), memset(&result, 0, sizeof result);
    gpu.computeMajor = major, gpu.computeMinor = minor, gpu.warpSize = 32, gpu.numSms = 1;
    gpu.maxThreadsPerBlock = 1024, gpu.maxThreadsPerMultiprocessor = sm_threads;
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.sharedMemPerBlock = 48 << 10, gpu.sharedMemPerMultiprocessor = sm_shared;
    gpu.sharedMemPerBlockOptin = sm_shared - 1024, gpu.reservedSharedMemPerBlock = 1024;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.numBlockBarriers = 1;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = shared;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, threads, shared)
        != CUDA_OCC_SUCCESS) return -1;
    *limiting = result.limitingFactors;
    return result.activeBlocksPerMultiprocessor;
}
"""
LIMITING: dict[Limit, int] = {"warps": 1, "registers": 2, "shared_memory": 4, "blocks": 8}
"""OCC_LIMIT_* of the header."""


def held(
    capability: Capability,
    warps: int,
    registers: int,
    shared_bytes: int = 0,
    tensor_columns: int = 0,
) -> Occupancy:
    block = Block(
        warp_count=warps,
        thread_register_count=registers,
        shared_bytes=shared_bytes,
        tensor_memory_column_count=tensor_columns,
    )
    return occupancy(block, ARCHITECTURES[capability])


# CUDA C++ Best Practices Guide, Calculating Occupancy: blocks of 128 and of 320 threads
@pytest.mark.parametrize(("warps", "blocks", "ratio"), [(4, 12, 0.75), (10, 4, 0.625)])
def test_nvidias_published_examples_of_37_registers(warps: int, blocks: int, ratio: float) -> None:
    found = held((8, 0), warps, 37)
    assert (found.sm_block_count, found.occupancy_ratio) == (blocks, ratio)
    assert found.limited_by == ("registers",)
    assert found.allocated_register_count == warps * 1280  # 37 x 32 = 1184, in steps of 256


@pytest.mark.parametrize(
    ("capability", "warps", "registers", "shared_kib", "blocks", "limited_by"),
    [
        # 6656 registers a warp: 2 in each of 4 parts, so 8 warps; 81 of 164 KiB: room for two
        ((8, 0), 8, 205, 80, 1, {"registers"}),
        ((8, 0), 4, 32, 40, 4, {"shared_memory"}),  # 41 of 164 KiB: exactly four
        ((8, 0), 4, 32, 40.125, 3, {"shared_memory"}),  # and one step of 128 bytes more: three
        ((8, 0), 1, 16, 0, 32, {"blocks"}),
        ((8, 6), 1, 16, 0, 16, {"blocks"}),
        ((8, 7), 4, 32, 163, 1, {"shared_memory"}),
        ((8, 9), 1, 16, 0, 24, {"blocks"}),
        ((8, 9), 32, 32, 0, 1, {"warps"}),  # 1024 threads of the 1536 that it holds
        # 4096 registers a warp: 4 in each part, 16 warps; 57 of 228 KiB
        ((9, 0), 4, 128, 56, 4, {"registers", "shared_memory"}),
        ((9, 0), 8, 229, 160, 1, {"registers", "shared_memory"}),
        ((9, 0), 4, 64, 227, 1, {"shared_memory"}),
        ((10, 0), 16, 32, 0, 4, {"registers", "warps"}),
        ((10, 3), 8, 255, 0, 1, {"registers"}),
        ((12, 0), 12, 40, 0, 4, {"registers", "warps"}),  # 1280 a warp: 12 in each part
    ],
)
def test_by_hand(
    capability: Capability,
    warps: int,
    registers: int,
    shared_kib: float,
    blocks: int,
    limited_by: set[Limit],
) -> None:
    found = held(capability, warps, registers, int(shared_kib * KIB))
    assert found.sm_block_count == blocks
    assert set(found.limited_by) == limited_by
    assert found.sm_warp_count == blocks * warps
    assert found.occupancy_ratio == blocks * warps / ARCHITECTURES[capability].most_warp_count
    assert found.sm_block_count == min(found.block_limits.values())


@pytest.mark.parametrize(
    ("capability", "warps", "registers", "shared_kib"),
    [
        ((8, 0), 4, 32, 163.125),
        ((8, 6), 4, 32, 100),
        ((9, 0), 4, 32, 227.125),
        ((9, 0), 32, 96, 0),
        ((9, 0), 33, 16, 0),
        ((9, 0), 1, 257, 0),
    ],
)
def test_what_does_not_fit_has_no_block_and_a_reason(
    capability: Capability, warps: int, registers: int, shared_kib: float
) -> None:
    found = held(capability, warps, registers, int(shared_kib * KIB))
    assert (found.sm_block_count, found.occupancy_ratio) == (0, 0)
    assert found.limited_by


@pytest.fixture(scope="module")
def calculator(
    require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    """NVIDIA's header, which ships with triton, as a library."""
    found = find_spec("triton")
    header = (
        Path(found.origin).parent / "backends" / "nvidia" / "include" / "cuda_occupancy.h"
        if found and found.origin
        else None
    )
    if header is None or not header.is_file():
        pytest.skip("needs cuda_occupancy.h, which comes with triton: pip install triton")
    folder = tmp_path_factory.mktemp("calculator")
    (folder / "calculator.c").write_text(CALCULATOR)
    source, output = folder / "calculator.c", folder / "calculator.so"
    options = ["-shared", "-fPIC", "-O1", f"-I{header.parent}"]
    command = [require("gcc"), *options, "-o", output, source]
    subprocess.run(command, check=True, capture_output=True)
    library = ctypes.CDLL(str(output))
    size, number = ctypes.c_size_t, ctypes.c_int
    library.blocks.argtypes = [*[number] * 3, size, number, number, size, ctypes.c_void_p]
    return library


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_nvidias_calculator_agrees(calculator: ctypes.CDLL, capability: Capability) -> None:
    sm = ARCHITECTURES[capability]
    shared = [kib * KIB for kib in (0, 1, 7, 48, 49, 75, 99, 113, 163, 227, 228)]
    shared += [1, 127, 6784, 20_096, 54_912]  # where the unit of allocation decides
    warps_of_block = (1, 2, 3, 4, 7, 8, 12, 16, 31, 32)
    registers_of_thread = (16, 33, 37, 40, 65, 72, 97, 128, 161, 200, 233, 255)
    asked = list(product(warps_of_block, registers_of_thread, shared))
    assert len(asked) == 1920
    for warps, registers, shared_bytes in asked:
        limiting = ctypes.c_int()
        where = (*capability, sm.most_warp_count * 32, sm.shared_bytes)
        blocks = calculator.blocks(
            *where, warps * 32, registers, shared_bytes, ctypes.byref(limiting)
        )
        found = held(capability, warps, registers, shared_bytes)
        assert found.sm_block_count == blocks, (warps, registers, shared_bytes)
        if blocks:
            # Bits beyond 15 are barriers, which our blocks do not run out of.
            bits = sum(LIMITING[name] for name in found.limited_by)
            assert bits == limiting.value & 15, (warps, registers, shared_bytes)
