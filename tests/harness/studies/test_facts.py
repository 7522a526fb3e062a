"""Studies of single statements on attention: they find what is true, and notice what is not."""

import pytest
import torch

from attnbench.harness import studies
from attnbench.harness.learning.studies import gradient_distance
from attnbench.harness.studies import attention_facts, joined_projections
from attnbench.harness.studies.attention_facts import hull_distance
from attnbench.harness.studies.output_share import Timed
from attnbench.impls.problem import Problem

CPU = torch.device("cpu")
SMALL = Problem(batch=1, seq_len=16, d_model=32, heads=4)


def found(name: str) -> list[dict]:
    return list(studies.load(name).run(SMALL, CPU, 0))


# ---- attention_facts -----------------------------------------------------------------------------


def test_true_statements_hold_and_false_ones_do_not() -> None:
    holds = {one["statement"]: one["holds"] for one in found("attention_facts")}
    assert holds == {
        "outputs_in_hull_of_values": True,
        "outputs_in_hull_of_inputs": False,
        "other_weights_fall": True,
        "fill_equals_infinity": True,
        "fill_equals_infinity_without_keys": False,
    }


def test_the_hull_is_no_box() -> None:
    """The corner of the box of a triangle is outside the triangle."""
    triangle = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    inside = torch.tensor([0.25, 0.25], dtype=torch.float64)
    corner = torch.tensor([1.0, 1.0], dtype=torch.float64)
    assert hull_distance(inside, triangle) == pytest.approx(0, abs=1e-9)
    assert hull_distance(corner, triangle) == pytest.approx(0.5)


def test_rows_without_a_key_are_uniform_by_fill_and_zero_by_infinity() -> None:
    (one,) = [
        one
        for one in found("attention_facts")
        if one["statement"] == "fill_equals_infinity_without_keys"
    ]
    assert one["worst_error_ratio"] == pytest.approx(1 / attention_facts.TOKENS)


# ---- gradient_distance ---------------------------------------------------------------------------


def test_a_gru_fades_and_attention_does_not() -> None:
    longest = {one["model"]: one for one in found("gradient_distance") if one["seq_len"] == 64}
    assert longest["gru"]["fade_per_token_high"] < -0.3
    assert abs(longest["attention"]["fade_per_token"]) < 0.01
    norms = longest["gru"]["gradient_norms"]
    assert norms[1] > 1e3 * norms[32] > 0


def test_paths_are_constant_linear_or_logarithmic() -> None:
    steps: dict[str, list[int]] = {}
    for one in found("gradient_distance"):
        assert 0 < one["fitted_tokens"] <= min(gradient_distance.FIT_MOST, one["seq_len"] - 1)
        steps.setdefault(one["model"], []).append(one["shortest_path_steps"])
        assert one["reach_tokens"] == one["seq_len"] - 1
        assert one["longest_path_steps"] >= one["shortest_path_steps"]
    assert len(set(steps["attention"])) == 1
    for model in ("gru", "convolutions"):
        eight, sixteen, thirty_two, _ = steps[model]
        assert thirty_two - sixteen == 2 * (sixteen - eight) > 0
    assert max(steps["dilated convolutions"]) < 2 * min(steps["dilated convolutions"])


# ---- initialisation, joined_projections, score_scale ---------------------------------------------


def test_only_xavier_keeps_variances_near_one() -> None:
    for one in found("initialisation"):
        variances = [one["output_variance"], one["gradient_variance"]]
        is_near = all(0.1 < value < 10 for value in variances)
        assert is_near is (one["rule"] == "xavier"), one
        assert one["output_variance_low"] < one["output_variance"] < one["output_variance_high"]


def test_three_products_are_held_against_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With given times: 3 ms for three, 2 ms for one."""
    results = []

    def timed(calls, device):
        results.append([call() for call in calls])
        return Timed([[[[ms] * 3] * 8] for ms in (3.0, 2.0)], contended_blocks=5)

    monkeypatch.setattr(joined_projections, "timed", timed)
    for one in found("joined_projections"):
        assert one["time_ratio"] == pytest.approx(1.5)
        assert (one["contended_blocks"], one["blocks"]) == (5, 8)
    for parts, whole in results:
        torch.testing.assert_close(torch.cat(parts, -1), whole, atol=1e-4, rtol=1e-4)


def test_the_derivative_of_the_softmax_is_that_of_autograd() -> None:
    from attnbench.harness.studies import score_scale

    generator = torch.Generator().manual_seed(0)
    keys = score_scale.KEYS
    q = torch.randn(1, 1, 4, generator=generator, dtype=torch.float64)
    k = torch.randn(1, keys, 4, generator=generator, dtype=torch.float64)
    p = torch.softmax(q @ k.mT / 2, -1)
    by_score, by_query = score_scale._gradients(p, k, 0.5)
    scores = (q @ k.mT / 2)[0, 0]
    jacobian = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), scores)
    assert float(by_score) == pytest.approx(float(jacobian.abs().mean()))
    of_query = torch.autograd.functional.jacobian(
        lambda one: torch.softmax(one @ k[0].mT / 2, -1), q[0, 0]
    )
    assert float(by_query) == pytest.approx(float(of_query.norm()))
