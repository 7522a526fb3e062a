"""Peak bytes are exact, and the budget holds."""

import subprocess
import sys

import pytest
import torch

from attnbench.harness.memory import is_out_of_memory, peak_bytes
from tests.conftest import environment

CPU = torch.device("cpu")


def test_peak_counts_what_was_alive_at_once():
    def call(_):
        a = torch.empty(1000, dtype=torch.uint8)
        b = torch.empty(500, dtype=torch.uint8)
        del a
        return b, torch.empty(200, dtype=torch.uint8)

    assert peak_bytes(lambda: None, call, CPU) == (1500, "allocator events")


def test_what_setup_leaves_counts_and_its_own_peak_does_not():
    def setup():
        torch.empty(10_000, dtype=torch.uint8)
        return torch.empty(300, dtype=torch.uint8)

    assert peak_bytes(setup, lambda ready: torch.empty(100, dtype=torch.uint8), CPU)[0] == 400


def test_a_call_that_allocates_nothing_has_peak_zero():
    x = torch.ones(4)
    assert peak_bytes(lambda: None, lambda _: x.neg_(), CPU)[0] == 0


def test_buffers_inside_kernels_are_seen():
    q = torch.randn(1, 2, 64, 16)
    peak, _ = peak_bytes(lambda: None, lambda _: torch.nn.functional.scaled_dot_product_attention(q, q, q), CPU)
    assert peak > q.nbytes  # the output and the flash kernel's scratch


def test_beyond_the_budget_allocations_fail_as_out_of_memory_and_relax_lifts_it():
    code = """
import torch
from attnbench.harness.memory import Budget, is_out_of_memory
from attnbench.harness.worker import warm_pools
device = torch.device("cpu")
warm_pools(device)
budget = Budget(256 << 20, device)
kept = torch.empty(200 << 20, dtype=torch.uint8)
try:
    torch.empty(200 << 20, dtype=torch.uint8)
except RuntimeError as error:
    assert is_out_of_memory(error), error
else:
    raise SystemExit("the budget did not hold")
budget.relax()
torch.empty(200 << 20, dtype=torch.uint8)
budget.tighten()
del kept
torch.empty(200 << 20, dtype=torch.uint8)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (MemoryError(), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
            ),
            True,
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (ValueError("CUDA out of memory"), False),
    ],
)
def test_only_memory_errors_are_out_of_memory(error, expected):
    assert is_out_of_memory(error) is expected
