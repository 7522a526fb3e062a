"""Settings and functions of the process are put back, and who changed them is told."""

import builtins
import json
import os
import random
import re
import signal
import socket
import time
from functools import partial

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from attnbench.harness.measure import clock, correctness
from attnbench.harness.measure.graph_capture import overrides_streams
from attnbench.harness.measure.process_state import ProcessState
from tests.fakes.cheats._torch_backends import settable

THINGS = settable()


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
        (
            partial(torch.set_autocast_enabled, "cuda", True),
            partial(torch.is_autocast_enabled, "cuda"),
            "autocast on cuda from False to True",
        ),
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
    ("owner", "name"),
    [
        (correctness.CorrectnessCheck, "check"),
        (clock, "now_ns"),
        (clock.HostTimer, "sample"),
        (clock, "MAX_OTHER_CALLS"),
        (correctness.CheckResult, "complaint"),
        (time, "perf_counter_ns"),
        (torch, "isfinite"),
        (torch.Tensor, "norm"),
        (torch.autograd, "grad"),
        (builtins, "float"),
        (json, "dumps"),
    ],
)
def test_what_is_replaced_is_put_back_and_named(state, owner, name):
    before = vars(owner)[name]
    setattr(owner, name, lambda *_: None)
    changed = state.undo()
    assert f"{owner.__name__}.{name}: it changes what others run" in changed
    assert vars(owner)[name] is before
    assert state.undo() == ""


@pytest.mark.parametrize(
    ("owner", "name"), [(torch.Tensor, "double"), (socket.socket, "send"), (clock, "len")]
)
def test_a_new_name_that_hides_another_is_removed_and_named(state, owner, name):
    setattr(owner, name, lambda *_: None)
    assert f"{owner.__name__}.{name}: it changes" in state.undo()
    assert name not in vars(owner)


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


class Mode(TorchFunctionMode):
    def __torch_function__(self, *_):
        raise NotImplementedError("what we call must not pass through it")


class OperatorMode(TorchDispatchMode):
    def __torch_dispatch__(self, *_):
        raise NotImplementedError("what we call must not pass through it")


@pytest.mark.parametrize("mode", [Mode, OperatorMode])
def test_a_mode_that_was_left_on_is_left(state, mode):
    mode().__enter__()
    assert "modes from 0 to 1" in state.undo()
    assert state.undo() == ""


def test_a_timer_is_stopped_and_its_handler_put_back(state):
    before = signal.getsignal(signal.SIGALRM)

    def waste(*_):
        pass

    signal.signal(signal.SIGALRM, waste)
    signal.setitimer(signal.ITIMER_REAL, 1000.0)
    changed = state.undo()
    assert "the timer ITIMER_REAL from False to True" in changed
    assert "the handler of SIGALRM from" in changed
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_threads_get_their_cores_back(state):
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("one core is all there is")
    os.sched_setaffinity(0, {min(before)})
    assert "cores of thread" in state.undo()
    assert os.sched_getaffinity(0) == before


def test_a_function_with_other_code_inside_is_put_back(state):
    before = correctness.distance.__code__
    correctness.distance.__code__ = (lambda result, exact, *, by_row: 0.0).__code__
    assert "correctness.distance" in state.undo()
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


@pytest.mark.skipif(not overrides_streams(), reason="this torch has no such setting")
def test_the_stream_of_captured_leaves_is_put_back(state):
    torch.autograd.graph.set_override_stale_capture_stream(True)
    assert "captured leaves from False to True" in state.undo()
    assert torch._C._override_stale_capture_stream() is False


def test_the_generator_of_a_gpu_starts_again_too(fake_gpu):
    state, (generator,) = ProcessState(), torch.cuda.default_generators
    drawn = torch.rand(1, generator=generator)
    assert state.undo() == ""
    assert drawn == torch.rand(1, generator=generator)


@pytest.mark.parametrize("name", THINGS)
def test_whatever_torch_backends_lets_one_set_is_put_back_and_named(state, name):
    thing = THINGS[name]
    before = thing.read()
    if not thing.change():
        pytest.skip(f"it cannot be other than {before} here")
    assert re.match("changed .* from .* to ", state.undo())
    assert thing.read() == before
    assert state.undo() == ""
