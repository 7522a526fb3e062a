"""Signs of columns: what the result of other values must be, to the bit, without computing it."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.measure.input_values import InputValues, draw
from attnbench.harness.measure.output_check import Fingerprint
from attnbench.harness.measure.prepared_call import prepare_call
from attnbench.impls import load
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=48, d_model=32, heads=4, kv_heads=2)
PROBLEMS = [
    SMALL,
    replace(SMALL, causal=True, dtype="bf16", kv_heads=1),
    replace(SMALL, passes="forward+backward", kv_seq_len=20),
    replace(SMALL, passes="forward+backward", dtype="fp16", mask="padding"),
    replace(SMALL, passes="forward+backward", mask="chunked", window=16, softcap=1.0, sinks=True),
]


def results(prepared):
    found = prepared.run(prepared.setup())
    return found if isinstance(found, tuple) else (found,)


def case(backend, problem):
    values = InputValues(problem, CPU, 0)
    return values, prepare_call(problem, load(backend), values.tensors, values.gradient)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("backend", ["fused", "naive", "sdpa"])
def test_results_follow_the_drawn_signs_to_the_bit(backend, problem):
    if reason := load(backend).why_not(problem, CPU):
        pytest.skip(reason)
    values, prepared = case(backend, problem)
    with prepared.in_force():
        before = [one.clone() for one in results(prepared)]
        for seed in range(2):
            signs = draw(problem, CPU, torch.Generator().manual_seed(seed))
            values.flip(False, signs)
            found = results(prepared)
            assert not any(map(torch.equal, found[:3], before))  # the fourth is of sinks
            for one, first, factor in zip(found, before, signs.results, strict=True):
                expected = first * torch.from_numpy(factor).to(one.dtype)
                torch.testing.assert_close(one, expected, rtol=0, atol=0)


PREFIX = replace(
    SMALL, kv_seq_len=90, prefix=30, causal=True, causal_align="bottom_right"
)  # 60 keys of its own for 48 queries
STORED = [
    PREFIX,
    replace(SMALL, kv_dtype="int8"),
    replace(SMALL, kv_dtype="fp8", dtype="bf16", causal=True),
    replace(SMALL, page=16),
    replace(SMALL, page=16, kv_dtype="fp8", seq_len=1, kv_seq_len=40),
]


@pytest.mark.parametrize("problem", STORED)
@pytest.mark.parametrize("backend", ["kv_cache", "kv_cache:blocks"])
def test_results_follow_the_signs_of_stored_numbers_to_the_bit(backend, problem):
    test_results_follow_the_drawn_signs_to_the_bit(backend, problem)


@pytest.mark.parametrize("backend", ["kv_cache", "cascade"])
def test_gradients_of_a_shared_prefix_follow_the_signs_to_the_bit(backend):
    problem = replace(PREFIX, passes="forward+backward")
    test_results_follow_the_drawn_signs_to_the_bit(backend, problem)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_result_of_earlier_signs_is_noticed(problem):
    values, prepared = case("fused", problem)
    fingerprint = Fingerprint(problem, 0)
    with prepared.in_force():
        first = prepared.run(prepared.setup())
        fingerprint.expected = {False: fingerprint.take(first)}
        generator = torch.Generator().manual_seed(0)
        for _ in range(3):
            values.flip(False, draw(problem, CPU, generator))
            result = prepared.run(prepared.setup())
            fingerprint.look(result, False, values.columns, must=True)
        assert fingerprint.complaint == ""
        values.flip(False, draw(problem, CPU, generator))
        fingerprint.look(result, False, values.columns, must=True)
    assert "the result of earlier inputs" in fingerprint.complaint


def test_what_mixes_columns_does_not_follow():
    values, prepared = case("performer:64", SMALL)
    (before,) = results(prepared)
    signs = draw(SMALL, CPU, torch.Generator().manual_seed(0))
    values.flip(False, signs)
    (found,) = results(prepared)
    assert (found - before * torch.from_numpy(signs.results[0])).norm() > 0.01 * before.norm()


def test_in_a_layer_and_of_a_backward_pass_alone_results_are_unknown():
    layer = Problem(batch=2, seq_len=8, d_model=32, heads=4, scope="layer")
    for problem, names, shape in (
        (layer, {"query", "key", "value"}, (2, 1, 32)),
        (replace(layer, passes="backward"), set(), (2, 1, 32)),
        (replace(layer, scope="core", passes="backward"), set(), (2, 4, 1, 8)),
    ):
        signs = draw(problem, CPU, torch.Generator().manual_seed(3))
        assert signs.results is None
        assert set(signs.inputs) == names
        assert {one.shape for one in [*signs.inputs.values(), signs.gradient]} == {shape}


def test_too_few_signs_are_not_drawn_where_a_repetition_would_look_like_a_cache():
    layer = Problem(batch=1, seq_len=8, d_model=8, heads=1, scope="layer")
    assert draw(layer, CPU, torch.Generator()) is None
    assert draw(replace(layer, batch=2), CPU, torch.Generator()) is not None
    assert draw(replace(layer, scope="core"), CPU, torch.Generator()) is not None
