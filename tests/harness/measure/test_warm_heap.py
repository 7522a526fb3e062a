"""A warm heap keeps what is freed, until it gives it back."""

import json
import sys

import pytest

from attnbench.harness.measure.warm_heap import WarmHeap
from tests.conftest import ROOT, ran
from tests.search_path import searched

PROGRAM = """
import json, resource
import torch
from attnbench.harness.measure.warm_heap import WarmHeap
from attnbench.harness.measure.peak_memory import release

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.full((64 << 18,), 1.0)  # 64 MiB of fp32, every page touched, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
default = [faults() for _ in range(3)]
heap = WarmHeap()
heap.keep()
kept = [faults() for _ in range(60)]
heap.give_back()
release(torch.device("cpu"))
print(json.dumps({"default": default, "kept": kept, "given_back": faults()}))
"""
# of 64 MiB, even where the kernel hands out pages of 2 MiB; with pages of 4 KiB they are 16 384
FEWEST_FAULTS = 30


@pytest.mark.long
def test_a_repeated_allocation_costs_page_faults_only_where_the_heap_is_not_kept():
    """In a process of its own: the C library's thresholds hold for a whole process."""
    if not WarmHeap().works:
        pytest.skip("this C library has no mallopt")
    done = ran(
        [sys.executable, "-c", PROGRAM], check=True, env={"PYTHONPATH": searched(ROOT / ".package")}
    )
    found = json.loads(done.stdout)
    assert min(found["default"]) >= FEWEST_FAULTS
    # Not from the second call on: small allocations splinter the first blocks that are freed. It
    # took up to 10 calls.
    assert max(found["kept"][-20:]) < FEWEST_FAULTS / 3
    assert found["given_back"] >= FEWEST_FAULTS


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    heap = WarmHeap()
    assert not heap.works
    heap.keep()
    heap.give_back()
