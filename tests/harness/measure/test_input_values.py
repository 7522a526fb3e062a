"""Inputs get new numbers in place, and each call of a block gets numbers of its own."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.measure.input_values import EachCall, InputValues
from attnbench.harness.measure.judge import Judge, Seeds, places, taken
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=40, d_model=32, heads=4)
PROBLEMS = [
    SMALL,
    replace(SMALL, passes="forward+backward", dtype="bf16"),
    replace(SMALL, passes="backward"),
    replace(SMALL, scope="layer"),
    replace(SMALL, scope="layer", kv_seq_len=24, dtype="fp16", passes="forward+backward"),
    replace(SMALL, kv_dtype="int8"),
    replace(SMALL, kv_dtype="fp8", page=16, dtype="bf16"),
    replace(SMALL, kv_heads=4, latent=24, d_k=12, rope=4),
]


def copies(values):
    tensors = [*values.tensors.inputs.named().values()]
    tensors += [] if values.gradient is None else [values.gradient]
    return [tensor.detach().clone() for tensor in tensors]


def same(one, other):
    return [torch.equal(a, b) for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_new_numbers_are_written_in_place_without_a_trace(problem):
    values = InputValues(problem, CPU, 0)
    before, places = copies(values), [t.data_ptr() for t in values.tensors.inputs]
    values.draw(1)
    changed = [not one for one in same(copies(values), before)]
    if problem.passes == "backward":  # its graph holds the inputs
        assert changed == [False, False, False, True]
    else:
        assert changed[:3] == [True] * 3
    assert [tensor.data_ptr() for tensor in values.tensors.inputs] == places
    assert values.written() == ""  # version counters do not move
    values.draw(0)
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_wide_scores_end_when_the_first_numbers_are_drawn_again(problem):
    values = InputValues(problem, CPU, 0)
    before = copies(values)
    values.widen()
    assert not all(same(copies(values), before))
    values.draw(0)
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_call_reads_other_numbers_and_the_last_one_those_of_the_seed(problem):
    values = InputValues(problem, CPU, 0)
    before, each, seen = copies(values), EachCall(values), []
    each._random.seed(1)  # in bf16 close factors may give equal numbers
    for _ in range(5):
        each(last=False)
        seen.append(copies(values))
        assert values.written() == ""
    pairs = [(one, other) for place, one in enumerate(seen) for other in seen[:place]]
    assert not any(all(same(one, other)) for one, other in [*pairs, *((s, before) for s in seen)])
    each(last=True)
    assert all(same(copies(values), before))
    each(last=False)
    each.restore()
    assert all(same(copies(values), before))


@pytest.mark.parametrize("problem", PROBLEMS[:5])
def test_a_write_is_noticed_and_named(problem):
    values = InputValues(problem, CPU, 0)
    name = "key" if values.tensors.inputs.key is not values.tensors.inputs.query else "query"
    with torch.no_grad():
        values.tensors.inputs.key[..., 5, 3] += 0.25
    assert name in values.written()
    assert values.written() == ""  # said once


def test_a_result_that_is_kept_within_a_block_is_told_from_a_new_one_in_bf16():
    problem = Problem(batch=1, seq_len=4096, d_model=64, heads=1, dtype="bf16")
    values = InputValues(problem, CPU, 0)
    values.draw(1)
    each, attend = EachCall(values), torch.nn.functional.scaled_dot_product_attention
    each(last=False)
    kept = attend(*values.tensors.inputs)
    each(last=True)
    new = attend(*values.tensors.inputs)
    judge, seeds = Judge(), Seeds(values=1, first=0, places=2)

    def judged(result):
        return judge.judged(problem, seeds, taken(problem, [result], places(problem, 2)))

    assert judged(kept).complaint
    assert not judged(new).complaint
