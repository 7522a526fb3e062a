"""The studies find what is true, and notice if it is not."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from attnbench.harness import studies
from attnbench.harness.studies import attention_facts, score_scale
from attnbench.impls.problem import Problem
from attnbench.reports.data.row_groups import by

CPU = torch.device("cpu")
SMALL = Problem(batch=1, seq_len=64, d_model=64, heads=8)


@cache
def found(name: str, problem: Problem = SMALL) -> list[Any]:
    return anew(name, problem)


def anew(name: str, problem: Problem = SMALL) -> list[Any]:
    """Of the first part, if it has several."""
    return list(studies.load(name).run(problem, CPU, 0, **studies.declared(name).parts[0]))


@pytest.mark.parametrize("name", ["layer_properties", "attention_maps", "parameter_count"])
def test_equal_seeds_give_equal_findings(name: str) -> None:
    assert found(name) == anew(name)


# ---- statements ----------------------------------------------------------------------------------


def held(name: str, findings: list[Any]) -> dict[str, set[bool]]:
    """By what was tried, whether it held in each backend or dtype."""
    return {
        of: {one.holds for one in some} for of, some in by(findings, lambda one: one[name]).items()
    }


def test_true_properties_hold_in_every_backend_and_a_false_one_does_not() -> None:
    findings = found("layer_properties")
    assert {one.backend for one in findings} >= {"naive", "fused", "sdpa", "sdpa:math"}
    assert held("property", findings) == {
        "rows_sum_to_one": {True},
        "outputs_between_values": {True},
        "order_permutes_outputs": {True},
        "scaling_inputs_keeps_weights": {False},
    }


@pytest.mark.long
def test_statements_hold_in_every_backend_or_in_none_but_for_a_fill_in_fp16() -> None:
    assert held("statement", found("attention_facts")) == {
        "outputs_in_hull_of_values": {True},
        "outputs_in_hull_of_inputs": {False},
        "other_weights_fall": {True},
        "fill_equals_infinity": {True, False},  # not in fp16
        "fill_equals_infinity_without_keys": {False},
    }


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_properties_hold_within_the_rounding_of_half_precision(dtype: str) -> None:
    half = held("property", anew("layer_properties", replace(SMALL, dtype=dtype)))
    assert half == held("property", found("layer_properties"))


@pytest.mark.long
def test_a_backend_with_other_weights_has_other_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sigmoid of a score is a weight of its own."""
    weights = "attnbench.impls.shared.softmax.Softmax.weights"
    monkeypatch.setattr(weights, lambda _, scores: torch.sigmoid(scores))
    properties = [one for one in anew("layer_properties") if one.backend == "naive"]
    assert held("property", properties)["rows_sum_to_one"] == {False}
    assert held("property", properties)["outputs_between_values"] == {False}
    (fall,) = (
        one
        for one in anew("attention_facts")
        if one["backend"] == "naive" and one.statement == "other_weights_fall"
    )
    assert fall.holds, "no other weight changes"
    scales = [one for one in anew("score_scale") if one["of"] == "naive" and one.scaled]
    assert scales[0].score_variance < 0.5


@pytest.mark.long
def test_torch_cannot_add_a_billion_in_fp16() -> None:
    told = {one.complaint for one in found("attention_facts") if one["dtype"] == "fp16"}
    assert told == {"RuntimeError: value cannot be converted to type c10::Half without overflow"}


def test_the_hull_is_no_box() -> None:
    """The corner of the box of a triangle is outside the triangle."""
    triangle = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    inside = torch.tensor([0.25, 0.25], dtype=torch.float64)
    corner = torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert attention_facts.hull_distance(inside, triangle) == pytest.approx(0, abs=1e-9)
    assert attention_facts.hull_distance(corner, triangle) == pytest.approx(0.5)


@pytest.mark.long
def test_rows_without_a_key_are_uniform_by_fill_and_zero_by_infinity() -> None:
    name = "fill_equals_infinity_without_keys"
    errors = {one.worst_error_ratio for one in found("attention_facts") if one.statement == name}
    assert errors == {1 / attention_facts.KEYS, None}


# ---- gradients -----------------------------------------------------------------------------------


def test_a_gru_fades_and_attention_does_not() -> None:
    longest = {one.model: one for one in found("gradient_distance")}
    gru = longest["gru"]
    assert gru.fade_per_token_high < -0.3
    assert abs(longest["attention"].fade_per_token) < 0.01
    assert gru.gradient_norms[1] > 1e3 * gru.gradient_norms[32] > 0


# ---- scores --------------------------------------------------------------------------------------


SHARES = {"nn.MultiheadAttention": 1 / 4, "nn.Linear": 1 / 9}
"""Of d_k, that the variance of a layer's scores is: its queries and keys have 1/2 and 1/3."""


@pytest.mark.long
def test_scores_have_the_variance_of_their_width_where_weights_keep_that_of_their_inputs() -> None:
    for one in found("score_scale"):
        truth = SHARES.get(one.of, 1) * (1 if one.scaled else one.d_k)
        low, high = one.score_variance_low, one.score_variance_high
        # Twice the interval, because many findings are checked.
        assert abs(one.score_variance - truth) < 2 * (high - low), one
        assert low < one.score_variance < high
    named = {one.of for one in found("score_scale")}
    assert named >= {"Xavier, each projection", *SHARES, "naive", "sdpa:math"}
    entries = [one for one in found("score_scale") if one.of == "independent entries"]
    widest = {one.scaled: one for one in entries if one.d_k == 512}
    assert widest[False].entropy_ratio < 0.1 < 0.8 < widest[True].entropy_ratio
    assert widest[False].certain_row_ratio > 0.5
    assert widest[True].certain_row_ratio == 0
    assert widest[False].fp16_overflow_ratio > 0.1


def test_the_derivative_of_the_softmax_is_that_of_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(1, 1, 4, generator=generator, dtype=torch.float64)
    k = torch.randn(1, score_scale.KEYS, 4, generator=generator, dtype=torch.float64)
    scores = (q @ k.mT / 2)[0, 0]
    by_score, by_query = score_scale._gradients(torch.softmax(scores, -1)[None, None], k, 0.5)
    jacobian = torch.autograd.functional.jacobian
    of_scores = jacobian(lambda s: torch.softmax(s, -1), scores)
    assert float(by_score) == pytest.approx(float(of_scores.abs().mean()))
    of_query = jacobian(lambda one: torch.softmax(one @ k[0].mT / 2, -1), q[0, 0])
    assert float(by_query) == pytest.approx(float(of_query.norm()))


# ---- layers --------------------------------------------------------------------------------------


def test_merging_heads_copies_the_output_unless_it_is_merged_already() -> None:
    for one in found("head_copies"):
        copies = one.layout == "batched product" and one.heads > 1
        assert one.copied_bytes == (one.output_bytes if copies else 0), one
    half = Problem(batch=1, seq_len=64, d_model=64, heads=8, dtype="bf16")
    assert found("head_copies", half)[0].output_bytes == 64 * 256 * 2


def test_heads_add_parameters_only_if_their_width_is_fixed() -> None:
    counts = {(one.d_k_rule, one.heads): one.parameter_count for one in found("parameter_count")}
    shared = {count for (rule, _), count in counts.items() if rule == "d_model / heads"}
    assert shared == {4 * 512**2 + 4 * 512}
    assert counts["fixed at 64", 16] == 16 * (4 * 512 * 64 + 3 * 64) + 512


@pytest.mark.parametrize("causal", [False, True])
def test_maps_are_rows_of_weights_and_the_causal_ones_a_triangle(causal: bool) -> None:
    maps = found("attention_maps", Problem(batch=1, seq_len=64, d_model=64, heads=4, causal=causal))
    assert [one.head for one in maps] == [1, 2, 3, 4]
    for one in maps:
        rows = torch.tensor(one.weight_rows, dtype=torch.float64)
        wanted = torch.ones(12, dtype=torch.float64)
        torch.testing.assert_close(rows.sum(-1), wanted, rtol=0, atol=1e-6)
        assert bool((rows.triu(1) > 0).any()) is not causal


@pytest.mark.long
def test_errors_shrink_with_precision_and_every_backend_that_runs_here_is_studied() -> None:
    findings = found("precision")
    assert {one.seq_len for one in findings} == {64, 256, 1024}
    assert {"naive", "fused", "sdpa", "sdpa:math"} <= {one.backend for one in findings}
    assert not [one for one in findings if one.complaint]
    errors = {(f.backend, f.dtype): f.error_l2_ratio for f in findings if f.seq_len == 256}
    for backend in ("naive", "fused"):
        fp32, fp16, bf16 = (errors[backend, dtype] for dtype in ("fp32", "fp16", "bf16"))
        assert fp32 < 1e-5 < 1e-4 < fp16 < bf16 < 0.05


# ---- the worked example --------------------------------------------------------------------------


def test_scores_weights_and_outputs_are_those_in_print() -> None:
    one = found("worked_example")[0]
    assert one.score_rows == [[0.5, 0.5, 1.0], [0.5, 0.5, 0.5], [1.0, 1.0, 1.5]]
    printed = [0.274, 0.274, 0.452], [0.333, 0.333, 0.333], [0.274, 0.274, 0.452]
    assert [pytest.approx(row, abs=5e-4) for row in printed] == one.weight_rows
    first, second, third = one.output_rows
    assert first == third == pytest.approx([0.726, 0.726, 0.548, 0.726], abs=5e-4)
    assert second == pytest.approx([0.667] * 4, abs=5e-4)


def test_fills_and_booleans_agree_but_for_a_token_that_sees_nothing() -> None:
    _, causal, filled, nothing, fills = found("worked_example")
    assert causal.weight_rows == filled.weight_rows
    assert causal.score_rows[0] == [0.5, None, None]
    assert filled.score_rows[0] == [0.5, -1e9, -1e9]
    assert nothing.weight_rows[0] == [0, 0, 0]
    assert nothing.output_rows[0] == [0, 0, 0, 0]
    assert fills.weight_rows[0] == pytest.approx([1 / 3] * 3)
    assert nothing.output_rows[1:] == fills.output_rows[1:]
    assert all(one.worst_error < 1e-6 for one in found("worked_example")), "backends agree"
