"""Settings and functions of the process are put back, and who changed them is told."""

import random
import time
from functools import partial

import pytest
import torch

from attnbench.harness.measure import clock, correctness
from attnbench.harness.measure.process_state import ProcessState


@pytest.fixture
def state():
    found = ProcessState()
    yield found
    found.undo()


def set_sdpa():
    torch.backends.cuda.enable_flash_sdp(not torch.backends.cuda.flash_sdp_enabled())


@pytest.mark.parametrize(
    ("change", "read", "reason"),
    [
        (
            lambda: torch.set_num_threads(torch.get_num_threads() + 1),
            torch.get_num_threads,
            r"changed torch's number of threads from \d+ to \d+",
        ),
        (partial(torch.set_default_dtype, torch.float64), torch.get_default_dtype, "dtype from"),
        (
            partial(torch.set_default_device, "meta"),
            torch.get_default_device,
            "torch's default device from cpu to meta",
        ),
        (
            partial(torch.set_float32_matmul_precision, "medium"),
            torch.get_float32_matmul_precision,
            "matmul precision from highest to medium",
        ),
        (set_sdpa, torch.backends.cuda.flash_sdp_enabled, "SDPA's flash switch from True to False"),
        (partial(torch._C._set_grad_enabled, False), torch.is_grad_enabled, "grad mode from True"),
        (
            partial(torch.use_deterministic_algorithms, True),
            torch.are_deterministic_algorithms_enabled,
            "deterministic algorithms from False to True",
        ),
    ],
)
def test_a_setting_is_put_back_and_named(state, change, read, reason):
    before = read()
    change()
    assert read() != before
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(state.undo())
    assert read() == before
    assert state.undo() == ""


@pytest.mark.parametrize(
    ("owner", "name", "thorough"),
    [
        (correctness.CorrectnessCheck, "check", False),
        (clock, "now_ns", False),
        (clock.HostTimer, "sample", False),
        (correctness, "reference", False),
        (time, "perf_counter_ns", True),
        (torch, "isfinite", True),
        (torch.Tensor, "norm", True),
    ],
)
def test_a_replaced_function_is_put_back_and_named(state, owner, name, thorough):
    before = getattr(owner, name)
    setattr(owner, name, lambda *_: None)
    assert f"{owner.__name__}.{name}: it changes what others run" in state.undo(thorough=thorough)
    assert getattr(owner, name) is before
    assert state.undo() == ""


def test_a_function_with_other_code_inside_is_put_back(state):
    before = correctness.distance.__code__
    correctness.distance.__code__ = (lambda result, exact, *, by_row: 0.0).__code__
    assert "correctness.distance" in state.undo(thorough=False)
    assert correctness.distance.__code__ is before


def test_what_torchs_own_compiler_wraps_is_no_fault(state):
    before = torch.manual_seed

    def wrapped(seed):
        return before(seed)

    wrapped.__module__ = "torch._dynamo.eval_frame"
    torch.manual_seed = wrapped
    try:
        assert state.undo() == ""
    finally:
        torch.manual_seed = before


def test_random_numbers_may_be_used_and_start_again_for_the_next_case(state):
    drawn = random.random(), torch.rand(1)
    assert state.undo() == ""
    assert drawn == (random.random(), torch.rand(1))
