"""Correct backends pass and wrong results fail, also if fixed tolerances would pass them."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from attnbench import impls
from attnbench.harness.measure.correctness import (
    ALL_ROWS,
    TILE_ROWS,
    CorrectnessCheck,
    sample,
    widen,
)
from attnbench.harness.measure.input_values import InputValues
from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.impls.layer import as_call
from attnbench.impls.problem import Problem
from tests.impls.conftest import shaped

CPU = torch.device("cpu")
SMALL = Problem(batch=3, seq_len=40, d_model=32, heads=4)
LAYER = {"scope": "layer", "passes": "forward+backward"}


def result_of(
    problem,
    change=lambda output, gradients: (output, gradients),
    *,
    backend="fused",
    exactness="exact",
):
    tensors = make_tensors(problem, CPU, 0)
    check = CorrectnessCheck(problem, *tensors, 0)
    prepared = prepare_call(problem, impls.load(backend), tensors, check.grad_output)
    with prepared.in_force():
        output, gradients = prepared.result()
    changed = change(output.detach().clone(), [gradient.clone() for gradient in gradients])
    return check.check(*changed, exactness)


PROBLEMS = [
    SMALL,
    replace(SMALL, causal=True),
    replace(SMALL, scope="layer", passes="forward+backward"),
    replace(SMALL, seq_len=400, passes="forward+backward", kv_seq_len=400),
    replace(SMALL, causal=True, causal_align="bottom_right", seq_len=60, passes="backward"),
    replace(SMALL, mask="padding", batch=5, passes="forward+backward"),
    replace(SMALL, mask="random", causal=True, passes="forward+backward"),
    # the first and last entry are judged
    pytest.param(
        shaped(1100, 128, 8, 2, mask="padding", passes="forward+backward"),
        marks=pytest.mark.long,
    ),
    Problem(batch=1, seq_len=1, d_model=8, heads=1, passes="forward+backward"),
    shaped(1, 3000, 32, 2, causal=True, scope="layer", passes="forward+backward"),
]


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("backend", ["fused", "sdpa"])
def test_correct_backends_pass(problem, backend, dtype):
    result = result_of(replace(problem, dtype=dtype), backend=backend)
    assert result.complaint == ""
    assert result.error_ratio <= 2


@pytest.mark.parametrize("backend", ["torch_mha", "torch_mha:no_fast_path"])
def test_torch_s_module_passes_where_keys_are_padding(backend):
    problem = shaped(3, 9, 32, 4, kv_seq_len=50, mask="padding", dtype="fp16", **LAYER)
    result = result_of(problem, backend=backend)
    assert result.complaint == ""


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_kernel_that_drops_the_last_64_keys_fails_at_16k(dtype):
    problem = Problem(batch=1, seq_len=16384, d_model=64, heads=1, dtype=dtype)
    tensors = make_tensors(problem, CPU, 0)
    q, k, v = tensors.inputs
    check = CorrectnessCheck(problem, *tensors, 0)
    rows = torch.tensor(check.rows)
    output = torch.ones_like(q)
    output[:, :, rows] = (q[:, :, rows] @ k[:, :, :-64].mT * problem.scale).softmax(-1) @ v[
        :, :, :-64
    ]
    assert "times as far" in check.check(output, []).complaint
    output[:, :, rows] = (q[:, :, rows] @ k.mT * problem.scale).softmax(-1) @ v
    assert check.check(output, []).complaint == ""


def test_a_kernel_may_sum_the_keys_one_after_the_other():
    """As flex_attention does on a CPU; the textbook formula sums in blocks, and is nearer."""
    problem = Problem(batch=1, seq_len=4096, d_model=16, heads=1)
    tensors = make_tensors(problem, CPU, 0)
    q, k, v = (x[0, 0] for x in tensors.inputs)
    check = CorrectnessCheck(problem, *tensors, 0)
    weights = (q[check.rows] @ k.T * problem.scale).exp()
    total, sums = torch.zeros(len(check.rows), 1), torch.zeros(len(check.rows), 16)
    for key in range(4096):
        total += weights[:, key, None]
        sums += weights[:, key, None] * v[key]
    output = torch.ones(1, 1, 4096, 16)
    output[0, 0, check.rows] = sums / total
    found = check.check(output, [])
    assert found.complaint == ""
    assert found.error_ratio > 2
    output[0, 0, check.rows] *= 1 + 4 * check.limits.sum_error
    assert "times as far" in check.check(output, []).complaint


def test_dropped_keys_are_seen_under_a_causal_mask_too():
    problem = Problem(batch=1, seq_len=4096, d_model=64, heads=1, causal=True)
    tensors = make_tensors(problem, CPU, 0)
    q, k, v = tensors.inputs
    mask = torch.ones(4096, 4096, dtype=torch.bool).tril()
    mask[3000:, 2000:2064] = (
        False  # later rows skip one tile; the few early rows, whose outputs are largest, are right
    )
    output = (q @ k.mT * problem.scale).masked_fill(~mask, float("-inf")).softmax(-1) @ v
    assert "times as far" in CorrectnessCheck(problem, *tensors, 0).check(output, []).complaint


TRAINING = replace(SMALL, passes="forward+backward")
OUT_OF_FORM = [
    (lambda output, gradients: (output * float("nan"), gradients), "the output has NaN"),
    (
        lambda output, gradients: (output, [gradients[0] * float("inf"), *gradients[1:]]),
        "a gradient has NaN",
    ),
    (lambda output, gradients: (output[:, :, :-1], gradients), "output of shape"),
]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *OUT_OF_FORM,
        (
            lambda output, gradients: (output, [*gradients[:2], gradients[2] * 1.001]),
            "times as far",
        ),
        (lambda output, gradients: (output * 1.0001, gradients), "times as far"),
        (lambda output, gradients: (output.roll(1, 1), gradients), "times as far"),
    ],
)
def test_wrong_results_fail(change, words):
    assert words in result_of(TRAINING, change).complaint


def checked(problem, exactness, change=lambda output, gradients: (output, gradients)):
    return result_of(problem, change, exactness=exactness)


def test_what_is_approximate_may_be_any_distance_away_and_the_distance_is_told():
    doubled = checked(TRAINING, "approximate", lambda output, gradients: (3 * output, gradients))
    assert doubled.complaint == ""
    assert doubled.error_l2_ratio == pytest.approx(2, rel=1e-3)
    assert doubled.error_ratio > 1e5
    assert doubled.output_cosine == pytest.approx(1)
    assert (
        "times as far"
        in checked(TRAINING, "exact", lambda output, gradients: (3 * output, gradients)).complaint
    )


def test_the_cosine_tells_an_output_that_is_off_from_one_that_says_nothing():
    def shuffled(output, gradients):
        return output.flatten()[torch.randperm(output.numel())].view_as(output), gradients

    assert abs(checked(TRAINING, "approximate", shuffled).output_cosine) < 0.2
    opposite = checked(TRAINING, "approximate", lambda output, gradients: (-output, gradients))
    assert opposite.output_cosine == pytest.approx(-1)
    assert checked(TRAINING, "exact").output_cosine is None


def test_a_gradient_that_vanishes_has_no_relative_error_of_an_approximation():
    """That of the keys' bias, which shifts whole rows of scores."""
    problem = replace(TRAINING, scope="layer")

    def larger(output, gradients):
        return output, [*gradients[:4], gradients[4] + gradients[3].mean(1), *gradients[5:]]

    found = checked(problem, "approximate", larger)
    assert found.complaint == ""
    assert found.error_l2_ratio < 1e-3


@pytest.mark.parametrize("exactness", ["approximate", "other"])
@pytest.mark.parametrize(("change", "words"), OUT_OF_FORM)
def test_finite_numbers_of_the_right_shape_are_wanted_of_all(exactness, change, words):
    assert words in checked(TRAINING, exactness, change).complaint


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_of_a_single_key_a_last_place_is_allowed_and_an_approximation_may_be_off(dtype):
    """The textbook formula gives the value itself: no error to compare with."""
    single = replace(SMALL, seq_len=1, kv_seq_len=1, dtype=dtype)
    rounded = 1 + 2.0 ** {"fp32": -23, "bf16": -7, "fp16": -10}[dtype]

    def off(output, gradients):
        return 3 * output, gradients

    for exactness in ("exact", "approximate"):
        assert checked(single, exactness).complaint == ""
    found = checked(single, "exact", lambda output, gradients: (rounded * output, gradients))
    assert (found.complaint, 0 < found.error_ratio <= 2) == ("", True)
    assert "times as far" in checked(single, "exact", off).complaint
    found = checked(single, "approximate", off)
    assert found.complaint == ""
    assert found.error_l2_ratio == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("exactness", ["exact", "approximate"])
@pytest.mark.parametrize("where", [0, 15])
def test_queries_that_see_no_key_are_zero_to_the_bit(where, exactness):
    """A leading one of a causal problem, and one fully masked."""
    causal = {"seq_len": 40, "kv_seq_len": 25, "causal": True, "causal_align": "bottom_right"}
    problem = replace(SMALL, **(causal if where == 0 else {"mask": "random"}))

    def dirty(output, gradients):
        output[0, 0, where] = 1e-9
        return output, gradients

    assert checked(problem, exactness).complaint == ""
    assert checked(problem, exactness, dirty).complaint == "not zero where exactly zero is right"


def test_long_problems_are_sampled_in_every_tile_of_rows():
    long = Problem(batch=2, seq_len=5003, d_model=32, heads=2)
    entries, rows = sample(long, torch.Generator().manual_seed(0))
    assert entries == [0, 1]
    assert rows == sorted(set(rows))
    assert {row // TILE_ROWS for row in rows} == set(range(-(-5003 // TILE_ROWS)))
    assert len(rows) <= 5003 / TILE_ROWS + 3
    assert (rows[0], rows[-1]) == (0, 5002)
    assert sample(long, torch.Generator().manual_seed(1))[1] != rows
    assert sample(Problem(batch=2, seq_len=ALL_ROWS, d_model=32, heads=2), torch.Generator())[
        1
    ] == list(range(ALL_ROWS))


def test_of_huge_batches_random_entries_are_checked():
    huge = Problem(batch=64, seq_len=16384, d_model=2048, heads=32)
    drawn = [sample(huge, torch.Generator().manual_seed(seed))[0] for seed in range(3)]
    assert all(2 <= len(entries) == len(set(entries)) < 64 for entries in drawn)
    assert len({tuple(entries) for entries in drawn}) == 3


LONG = Problem(batch=2, seq_len=400, d_model=32, heads=4)


def test_one_number_that_is_not_finite_fails_wherever_it_is():
    unchecked = next(row for row in range(400) if row not in sample_of(LONG))

    def spoil(output, gradients):
        output[1, 2, unchecked, 3] = float("nan")
        return output, gradients

    assert result_of(LONG, spoil).complaint == "the output has NaN or infinity"

    def spoil_gradient(output, gradients):
        gradients[2][0, 1, 7, 5] = float("inf")
        return output, gradients

    training = replace(LONG, passes="forward+backward")
    assert result_of(training, spoil_gradient).complaint == "a gradient has NaN or infinity"


def sample_of(problem):
    return CorrectnessCheck(problem, *make_tensors(problem, CPU, 0), 0).rows


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_wide_scores_fail_a_softmax_that_subtracts_no_maximum(scope, dtype):
    problem = Problem(batch=2, seq_len=200, d_model=32, heads=4, dtype=dtype, scope=scope)
    tensors = make_tensors(problem, CPU, 0)
    widen(problem, tensors.inputs, 0)
    check = CorrectnessCheck(problem, *tensors, 0, wide=True)

    def attend(q, k, v, *, careless):
        scores = q @ k.mT * problem.scale
        assert scores.max() > 88.7
        assert scores.min() < -88.7
        weights = scores.exp() if careless else (scores - scores.amax(-1, keepdim=True)).exp()
        return weights / weights.sum(-1, keepdim=True) @ v

    for careless, complaint in ((False, ""), (True, "the output has NaN or infinity")):
        output = as_call(problem, *tensors, partial(attend, careless=careless))()
        assert check.check(output, []).complaint == complaint


def test_a_tile_of_queries_that_is_missing_from_the_gradients_of_keys_fails():
    problem = Problem(batch=1, seq_len=4096, d_model=32, heads=1, passes="forward+backward")
    tensors = make_tensors(problem, CPU, 0)
    check = CorrectnessCheck(problem, *tensors, 0)
    prepared = prepare_call(problem, impls.load("sdpa"), tensors, check.grad_output)
    with prepared.in_force():
        output, whole = prepared.result()
        prepared.grad_output[:, :, 2048:2064] = 0.0
        _, without = prepared.result()
    assert check.check(output, whole).complaint == ""
    assert "times as far" in check.check(output, [whole[0], *without[1:]]).complaint


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_a_single_query_with_wide_scores_convicts_no_correct_backend(dtype):
    """Fused was called wrong in 12 of 288 such problems: the textbook was exact by chance."""
    problem = shaped(1, 1, 2048, 32, kv_seq_len=512, kv_heads=8, dtype=dtype)
    for seed in (0, 1, 8, 10):
        values = InputValues(problem, CPU, seed)
        values.widen()
        check = CorrectnessCheck(problem, *values.tensors, seed, few_rows=True, wide=True)
        for name in ("naive", "fused", "sdpa"):
            prepared = prepare_call(problem, impls.load(name), values.tensors, None)
            assert check.check(prepared.result()[0], ()).complaint == "", (name, seed)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_gradients_of_wide_scores_are_compared_in_fp32_and_finite_in_half_precision(dtype):
    """Two tokens, of which one has all the weight: gradients of scores cancel."""
    problem = shaped(1, 2, 64, 1, causal=True, dtype=dtype, passes="forward+backward")
    values = InputValues(problem, CPU, 0)
    values.widen()
    check = CorrectnessCheck(problem, *values.tensors, 0, few_rows=True, wide=True)
    gradients = [exact.clone() for exact in check.limits.exact[1:]]
    output = check.limits.exact[0]
    assert check.check(output, gradients).complaint == ""
    off = [*gradients[:2], gradients[2] * 2]
    assert bool(check.check(output, off).complaint) == (dtype == "fp32")
    lost = [gradients[0] * float("inf"), *gradients[1:]]
    assert "NaN or infinity" in check.check(output, lost).complaint
