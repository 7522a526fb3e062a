"""What one case does to the others in the process ends it, and it is told."""

import ctypes
import threading
from types import SimpleNamespace

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import left_running
from attnbench.harness.measure.warm_heap import M_MMAP_MAX, M_MMAP_THRESHOLD, Mallinfo2, WarmHeap
from attnbench.harness.worker.phases import PhaseRunner
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import worker_config

MIB = 1 << 20
PROBLEM = Problem(batch=1, seq_len=8, d_model=8, heads=1)
CHEAT, OTHER = (Case(backend=name, problem=PROBLEM) for name in ("cheat", "other"))
LIBC = ctypes.CDLL(None)

keeps_a_heap = pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="needs glibc's heap")


@pytest.fixture
def phases(monkeypatch):
    """`said`: the events."""
    monkeypatch.setattr(left_running, "THREAD_REST_S", 0.2)  # before it notes what is ours
    said = []
    found = PhaseRunner(worker_config(), said.append, forget=lambda case_id: None)
    found.said = said
    yield found
    found.budget.lift()  # the limit of this process's address space


@pytest.fixture
def heap(phases):
    phases.kept_heap = WarmHeap()
    phases.kept_heap.keep()
    yield phases.kept_heap
    phases.kept_heap.give_back()


def ended(phases):
    return [(one["case"], one["reason"]) for one in phases.said if one["event"] == "ended"]


def test_what_is_compiled_ahead_counts_as_compiling_and_nothing_does_where_nothing_is(phases):
    ahead = SimpleNamespace(compiles_ahead=True, compile_ahead=lambda *_: None)
    found = phases.compiled_ahead(OTHER, ahead)
    assert (spent_ms := found.ms) > 0
    found.add(None)  # of a set-up that compiles nothing more
    assert found.ms == spent_ms
    found.add(500.0)
    assert found.ms == spent_ms + 500
    assert phases.compiled_ahead(OTHER, SimpleNamespace(compiles_ahead=False)).ms is None
    broken = SimpleNamespace(compiles_ahead=True, compile_ahead=lambda *_: 1 / 0)
    assert phases.compiled_ahead(CHEAT, broken) is None
    assert [case for case, _ in ended(phases)] == [CHEAT.id]


@keeps_a_heap
def test_whoever_gives_the_warm_heap_back_is_an_error(phases, heap):
    torch.ones(32 * MIB, dtype=torch.uint8)  # freed at once, and kept
    assert phases.run(OTHER, "latency", lambda: 7, block=True) == 7
    assert phases.run(CHEAT, "latency", lambda: LIBC.malloc_trim(0), block=True) is None
    ((case, reason),) = ended(phases)
    assert case == CHEAT.id
    assert "of the heap back, which others' calls fetch anew" in reason


@keeps_a_heap
def test_the_settings_of_the_heap_are_renewed_after_each_step(phases, heap):
    def maps_everything():
        LIBC.mallopt(M_MMAP_MAX, 65536)
        LIBC.mallopt(M_MMAP_THRESHOLD, 4096)

    def mapped_bytes():
        return LIBC.mallinfo2().hblkhd

    LIBC.mallinfo2.restype = Mallinfo2
    before = mapped_bytes()
    maps_everything()
    mapped = torch.empty(256 * MIB, dtype=torch.uint8)
    assert mapped_bytes() > before
    del mapped
    assert phases.run(CHEAT, "latency", maps_everything, block=True) is None
    kept = torch.empty(256 * MIB, dtype=torch.uint8)
    assert mapped_bytes() == before
    del kept


def test_a_case_whose_thread_works_while_others_are_called_ends_and_the_process_with_it(phases):
    over, work = threading.Event(), threading.Event()

    def works():
        while not over.is_set():
            work.wait()

    thread = threading.Thread(target=works)
    assert phases.run(CHEAT, "latency", thread.start) is None
    assert ended(phases) == []  # it waits
    work.set()
    try:
        assert phases.run(OTHER, "latency", lambda: 7, block=True) == 7
    finally:
        over.set()
        thread.join()
    ((case, reason),) = ended(phases)
    assert case == CHEAT.id
    assert reason.startswith("a thread that it started still works")
    assert [one["poisoned"] for one in phases.said if one["event"] == "ended"] == [True]
