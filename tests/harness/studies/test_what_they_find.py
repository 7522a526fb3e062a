"""The studies find what is true, and notice if it is not."""

import pytest
import torch

from attnbench.harness import studies
from attnbench.harness.studies import layer_properties
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=1, seq_len=64, d_model=64, heads=8)


def found(name: str, problem: Problem = SMALL) -> list[dict]:
    return list(studies.load(name).run(problem, CPU, 0))


@pytest.mark.long
def test_scores_have_the_variance_of_their_width_and_scaling_makes_it_one():
    for finding in found("score_scale"):
        truth = 1 if finding["scaled"] else finding["d_k"]
        low, high = finding["score_variance_low"], finding["score_variance_high"]
        # Twice the interval, because ten findings are checked.
        assert abs(finding["score_variance"] - truth) < 2 * (high - low)
        assert low < finding["score_variance"] < high
    narrow, broad = (
        next(f for f in found("score_scale") if f["d_k"] == 512 and f["scaled"] is scaled)
        for scaled in (False, True)
    )
    assert narrow["entropy_ratio"] < 0.1 < 0.8 < broad["entropy_ratio"]
    assert narrow["certain_row_ratio"] > 0.5
    assert broad["certain_row_ratio"] == 0
    assert narrow["fp16_overflow_ratio"] > 0.1


def test_true_properties_hold_and_a_false_one_does_not():
    holds = {finding["property"]: finding["holds"] for finding in found("layer_properties")}
    assert holds == {
        "rows_sum_to_one": True,
        "outputs_between_values": True,
        "order_permutes_outputs": True,
        "scaling_inputs_keeps_weights": False,
    }


def test_wrong_attention_has_wrong_properties(monkeypatch):
    monkeypatch.setattr(layer_properties, "weights", lambda q, k: torch.sigmoid(q @ k.mT / 4))
    holds = {finding["property"]: finding["holds"] for finding in found("layer_properties")}
    assert not holds["rows_sum_to_one"]
    assert not holds["outputs_between_values"]


def test_merging_heads_copies_the_output_unless_it_is_merged_already():
    for finding in found("head_copies"):
        copies = finding["layout"] == "batched product" and finding["heads"] > 1
        assert finding["copied_bytes"] == (finding["output_bytes"] if copies else 0), finding
    half = Problem(batch=1, seq_len=64, d_model=64, heads=8, dtype="bf16")
    assert found("head_copies", half)[0]["output_bytes"] == 64 * 256 * 2


def test_heads_add_parameters_only_if_their_width_is_fixed():
    counts = {
        (finding["d_k_rule"], finding["heads"]): finding["parameter_count"]
        for finding in found("parameter_count")
    }
    shared = {count for (rule, _), count in counts.items() if rule == "d_model / heads"}
    assert shared == {4 * 512**2 + 4 * 512}
    assert counts["fixed at 64", 16] == 16 * (4 * 512 * 64 + 3 * 64) + 512


@pytest.mark.parametrize("causal", [False, True])
def test_maps_are_rows_of_weights_and_the_causal_ones_a_triangle(causal):
    maps = found("attention_maps", Problem(batch=1, seq_len=64, d_model=64, heads=4, causal=causal))
    assert [finding["head"] for finding in maps] == [1, 2, 3, 4]
    for finding in maps:
        rows = torch.tensor(finding["weight_rows"], dtype=torch.float64)
        torch.testing.assert_close(
            rows.sum(-1), torch.ones(12, dtype=torch.float64), rtol=0, atol=1e-6
        )
        assert bool((rows.triu(1) > 0).any()) is not causal
        assert finding["causal"] is causal


@pytest.mark.long
def test_errors_shrink_with_precision_and_every_backend_that_runs_here_is_studied():
    findings = found("precision")
    assert {finding["seq_len"] for finding in findings} == {64, 256, 1024}
    assert {"naive", "fused", "sdpa", "sdpa:math"} <= {finding["backend"] for finding in findings}
    assert not [finding for finding in findings if finding["complaint"]]
    errors = {
        (f["backend"], f["dtype"]): f["error_l2_ratio"] for f in findings if f["seq_len"] == 256
    }
    for backend in ("naive", "fused"):
        fp32, fp16, bf16 = (errors[backend, dtype] for dtype in ("fp32", "fp16", "bf16"))
        assert fp32 < 1e-5 < 1e-4 < fp16 < bf16 < 0.05


@pytest.mark.long
def test_projecting_all_heads_at_once_is_projecting_each(monkeypatch):
    assert {finding["holds"] for finding in found("projection_equality")} == {True}
    split = torch.Tensor.split
    # heads in another order
    monkeypatch.setattr(torch.Tensor, "split", lambda tensor, size: split(tensor, size)[::-1])
    assert {finding["holds"] for finding in found("projection_equality")} == {False}
