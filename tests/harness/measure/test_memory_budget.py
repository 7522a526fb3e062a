"""The budget holds, and only memory errors are taken for memory errors."""

import errno
import sys

import pytest
import torch

from attnbench.harness.measure import memory_budget
from attnbench.harness.measure.graph_capture import captured_graph
from attnbench.harness.measure.memory_budget import is_out_of_memory
from attnbench.harness.worker.serve import warm_up_device
from tests.conftest import ran


def succeeds_alone(code: str) -> None:
    """In a process of its own: the limit is the process's."""
    ran([sys.executable, "-c", code], check=True)


BUDGET = """
import mmap
import torch
from attnbench.harness.devices.host import address_space_bytes
from attnbench.harness.measure.memory_budget import Budget, is_out_of_memory
from attnbench.harness.worker.serve import warm_up_device

def refused(when):
    try:
        torch.empty(200 << 20, dtype=torch.uint8)
    except RuntimeError as error:
        assert is_out_of_memory(error), error
    else:
        raise SystemExit(f"the budget did not hold {when}")

device = torch.device("cpu")
warm_up_device(device)
budget = Budget(256 << 20, device)
"""


@pytest.mark.long
def test_what_loading_code_takes_counts_for_no_case_and_the_budget_holds_after_it():
    succeeds_alone(f"""{BUDGET}
with budget.for_code():
    libraries = mmap.mmap(-1, 1 << 30)
kept = torch.empty(200 << 20, dtype=torch.uint8)
refused("after loading")
try:
    with budget.for_code():
        left_behind = mmap.mmap(-1, 1 << 30)
        left_behind.close()
        raise KeyError
except KeyError:
    refused("after loading has failed")
""")


@pytest.mark.long
def test_a_mapping_that_fails_is_out_of_memory_with_the_size_if_it_is_known(tmp_path):
    file = tmp_path / "zeros"
    with file.open("wb") as zeros:
        zeros.truncate(1 << 30)
    succeeds_alone(f"""
import mmap
import numpy as np
import torch
from attnbench.harness.measure.memory_budget import (
    Budget, is_out_of_memory, out_of_memory_reason,
)
file = {str(file)!r}
mappings = {{
    "python": lambda: mmap.mmap(-1, 1 << 30),
    "torch": lambda: torch.UntypedStorage.from_file(file, nbytes=1 << 30),
    "numpy": lambda: np.memmap(file, mode="r", shape=(1 << 30,)),
}}
budget = Budget(256 << 20, torch.device("cpu"))
for name, mapping in mappings.items():
    try:
        mapping()
    except Exception as error:
        assert is_out_of_memory(error), repr(error)
        reason = out_of_memory_reason(error, 256 << 20)
        assert "budget" in reason and "256.0 MiB" in reason, reason
        assert name != "torch" or "1.0 GiB more did not fit" in reason, reason
    else:
        raise SystemExit(f"{{name}} did not fail")
""")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("Triton Error [CUDA]: out of memory"), True),
        (MemoryError(), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate"
                " memory: you tried to allocate 8 bytes"
            ),
            True,
        ),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOENT, "No such file"), False),
        (ImportError("libx.so: cannot allocate memory in static TLS block"), False),
        (
            ImportError("libx.so: failed to map segment from shared object: Permission denied"),
            False,
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (ValueError("CUDA out of memory"), False),
    ],
)
def test_only_memory_errors_are_out_of_memory(error, expected):
    assert is_out_of_memory(error) is expected


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA, MIB = torch.device("cuda", 0), 1 << 20


def on_gpu(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device=CUDA)


def test_on_a_gpu_the_budget_counts_from_what_is_there_and_can_be_lifted(fake_gpu):
    ours = on_gpu(100)
    budget = memory_budget.Budget(64 * MIB, CUDA)
    kept = on_gpu(40)
    with pytest.raises(torch.OutOfMemoryError) as error:
        on_gpu(40)
    assert is_out_of_memory(error.value)
    reason = memory_budget.out_of_memory_reason(error.value, 64 * MIB)
    assert reason == "40.00 MiB more did not fit into the budget of 64.0 MiB"
    budget.lift()
    assert on_gpu(1000).nbytes == 1000 * MIB
    memory_budget.release(CUDA)
    budget.enforce(extra_bytes=40 * MIB)
    assert on_gpu(50).nbytes == 50 * MIB
    with budget.for_code(), pytest.raises(torch.OutOfMemoryError):
        on_gpu(80)  # code lies on the host: it gives a GPU no more room
    with pytest.raises(KeyError), budget.for_our_work():
        raise KeyError
    with pytest.raises(torch.OutOfMemoryError):
        on_gpu(80)
    assert (ours.nbytes, kept.nbytes) == (100 * MIB, 40 * MIB)


def test_what_the_allocator_merely_caches_adds_nothing_to_the_budget(fake_gpu):
    on_gpu(100)
    memory_budget.Budget(64 * MIB, CUDA)
    with pytest.raises(torch.OutOfMemoryError):
        on_gpu(80)


def test_the_workspaces_of_matrix_products_are_no_part_of_the_budget(fake_gpu):
    """Neither that of the usual stream, nor that of the stream on which graphs are captured."""
    fake_gpu.workspace_bytes = 32 * MIB
    warm_up_device(CUDA)
    memory_budget.Budget(64 * MIB, CUDA)
    x = torch.ones(64, 64, device=CUDA)
    for _ in range(3):
        captured_graph(lambda: lambda: x @ x, lambda call: call(), CUDA)
        memory_budget.release(CUDA)
    assert on_gpu(60).nbytes == 60 * MIB
