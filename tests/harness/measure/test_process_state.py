"""Settings and functions of the process are put back, and who changed them is told."""

import builtins
import random
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


@pytest.mark.parametrize(
    ("change", "read", "reason"),
    [
        (
            lambda: torch.set_num_threads(torch.get_num_threads() + 1),
            torch.get_num_threads,
            r"changed torch's number of threads from \d+ to \d+",
        ),
        (
            partial(torch.set_autocast_enabled, "cuda", True),
            partial(torch.is_autocast_enabled, "cuda"),
            "autocast on cuda from False to True",
        ),
        (partial(torch._C._set_grad_enabled, False), torch.is_grad_enabled, "grad mode from True"),
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
    ("owner", "name"),
    [
        (correctness.CorrectnessCheck, "check"),
        (clock, "now_ns"),
        (clock.HostTimer, "sample"),
        (clock, "MAX_OTHER_CALLS"),
        (torch.Tensor, "norm"),
        (builtins, "float"),
    ],
)
def test_what_is_replaced_is_put_back_and_named(state, owner, name):
    before = vars(owner)[name]
    setattr(owner, name, lambda *_: None)
    changed = state.undo()
    assert f"{owner.__name__}.{name}: it changes what others run" in changed
    assert vars(owner)[name] is before
    assert state.undo() == ""


def test_a_new_name_that_hides_nothing_is_no_fault(state):
    torch.Tensor.attnbench_test, torch.attnbench_test = 1, 2
    try:
        assert state.undo() == ""
    finally:
        del torch.Tensor.attnbench_test, torch.attnbench_test


@pytest.mark.filterwarnings("ignore:Warning only once:UserWarning")
def test_an_operator_of_torch_that_is_overridden_spoils_the_process_and_a_new_one_does_not(state):
    with torch.library._scoped_library("attnbench_test", "FRAGMENT") as own:
        own.define("twice(Tensor x) -> Tensor")
        own.impl("twice", lambda x: 2 * x, "CPU")
        assert (state.undo(), state.spoiled) == ("", False)
    with torch.library._scoped_library("aten", "IMPL") as of_vmap:
        of_vmap.impl("hardswish", lambda x: x, "FuncTorchBatched")  # as flex attention does
        assert (state.undo(), state.spoiled) == ("", False)
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("hardswish", lambda x: x, "CPU")
        assert "replaced aten/hardswish/CPU" in state.undo()
    assert state.spoiled


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
