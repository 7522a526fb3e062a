"""Inputs change their values in place and come back, and whoever writes to them is noticed."""

import itertools
from dataclasses import replace

import pytest
import torch

from attnbench.harness.measure.input_values import InputValues
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=40, d_model=32, heads=4)
PROBLEMS = [
    SMALL,
    replace(SMALL, passes="forward+backward", dtype="bf16"),
    replace(SMALL, scope="layer"),
    replace(SMALL, scope="layer", kv_seq_len=24, dtype="fp16", passes="forward+backward"),
]


def copies(values):
    tensors = [*values.tensors.inputs, *(values.tensors.weights or _none).tensors()]
    gradient = [] if values.gradient is None else [values.gradient]
    return [tensor.detach().clone() for tensor in [*tensors, *gradient]]


class _none:  # noqa: N801 - stands for no weights
    tensors = staticmethod(list)


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_signs_flip_in_place_without_a_trace_and_flip_back_exactly(problem):
    values = InputValues(problem, CPU, 0)
    before, places = copies(values), [t.data_ptr() for t in values.tensors.inputs]
    values.flip(True)
    assert not same(copies(values), before)
    assert torch.equal(values.tensors.inputs.value, -before[2])
    assert [tensor.data_ptr() for tensor in values.tensors.inputs] == places
    assert (values.written(), values.changed()) == ("", "")  # version counters do not move
    values.flip(False)
    assert same(copies(values), before)
    assert values.changed() == ""


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize(
    "change", [{"kv_heads": 2}, {"scope": "layer"}, {"scope": "layer", "kv_seq_len": 24}]
)
def test_new_values_were_never_there_before_and_go_without_a_trace(passes, change):
    values = InputValues(replace(SMALL, passes=passes, **change), CPU, 0)
    before, seen = copies(values), []
    for _ in range(6):
        values.renew()
        seen.append(copies(values))
        assert (values.written(), values.changed()) == ("", "")
        assert same(copies(values), seen[-1])  # looking for changes leaves them as they are
    for one, other in itertools.combinations([before, *seen], 2):
        assert not same(one, other)
    changed = [-1] if passes == "backward" else [0, 1, 2]
    assert not any(torch.equal(x[i], seen[0][i]) for x in seen[1:] for i in changed)
    values.restore()
    assert same(copies(values), before)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_write_is_noticed_named_and_undone(problem, flipped):
    values = InputValues(problem, CPU, 0)
    before = copies(values)
    values.flip(flipped)
    name = "key" if values.tensors.inputs.key is not values.tensors.inputs.query else "query"
    key = values.tensors.inputs.key
    with torch.no_grad():
        key[..., 5, 3] += 0.25
    assert values.written() == name
    assert values.written() == ""  # said once
    key.data[..., 5, 3] -= 0.125  # which the version counter does not count
    assert values.written() == ""
    assert values.changed() == name
    values.restore()
    assert same(copies(values), before)
    assert (values.flipped, values.written(), values.changed()) == (False, "", "")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_scaled_inputs_are_new_in_size_and_sign_and_stay_if_they_shall_not_be(problem):
    values = InputValues(problem, CPU, 0)
    backward = problem.passes == "backward"
    read = values.gradient if backward else values.tensors.inputs.key
    first, others = read.detach().clone(), values.tensors.inputs.key.detach().clone()
    values.scale(new=False)
    assert torch.equal(read, first)
    values.scale(new=True)
    factors = (read / first).detach()
    one = torch.ones((), dtype=factors.dtype)
    assert not torch.isclose(factors.abs(), one).all()
    assert torch.isclose(factors.abs(), one, rtol=0.06).all()
    assert not backward or torch.equal(values.tensors.inputs.key, others)
    assert factors.numel() < 64 or 0.2 < (factors > 0).float().mean() < 0.8
