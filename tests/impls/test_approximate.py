"""Linformer and Performer compute what their papers say, pair by pair.

Their distance from attention is measured, not limited.
"""

from dataclasses import replace
from math import log2
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.impls import Problem, linformer, load, make_inputs, performer
from attnbench.impls.reference import reference
from attnbench.impls.shared.mask_tensors import mask_matrix
from tests.harness.measure.test_peak_memory import weighed
from tests.impls.conftest import BOTTOM_RIGHT, TOP_LEFT

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {"batch": 3, "seq_len": 37, "d_model": 32, "heads": 4}
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"kv_heads": 2, "d_v": 5},
    "cross": {"kv_seq_len": 50},
    "padded": {"mask": "padding"},
    "causal": {"causal": True, "seq_len": 300, "kv_heads": 1},
    "causal_padded": {"causal": True, "mask": "padding"},
    "decode": {"seq_len": 3, "kv_seq_len": 200, "kv_heads": 2, **BOTTOM_RIGHT},
    "top_left": {"kv_seq_len": 20, **TOP_LEFT},
    "tall": {"kv_seq_len": 20, **BOTTOM_RIGHT},
}


def favor(problem: Problem, q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """FAVOR+ as a matrix of weights (Choromanski et al. 2021, equation 5); float64."""
    group = problem.heads // problem.kv_heads
    q, w = q.double(), w.double()
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    left, right = (x @ w.mT - x.square().sum(-1, keepdim=True) * problem.scale / 2 for x in (q, k))
    weights = left.exp() @ right.exp().mT
    seen = mask_matrix(problem, torch.arange(problem.seq_len))
    if seen is not None:
        weights = weights * seen[:, None]
    sums = weights.sum(-1, keepdim=True)
    return weights @ v / sums.where(sums > 0, 1.0)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_performer_is_the_product_of_its_features(shape: dict[str, Any]) -> None:
    problem = Problem(**SHAPE | shape, passes="forward+backward")
    inputs = make_inputs(problem, CPU, seed=1)
    ours = load("performer:64").prepare(problem, inputs, None)()
    expected = favor(problem, *inputs, performer.random_features(64, problem.d_k, CPU))
    gradient = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=1e-4)
    gradients = torch.autograd.grad(ours, inputs, gradient)
    exact = torch.autograd.grad(expected, inputs, gradient.double())
    for a, b in zip(gradients, exact, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_features_of_a_block_are_orthogonal_and_their_mean_is_the_softmax_kernel() -> None:
    w = performer.random_features(1 << 14, 8, CPU).double()
    blocks = (w * 8**0.25).view(-1, 8, 8)
    products = blocks @ blocks.mT
    squares = products.diagonal(dim1=1, dim2=2)
    assert float((products - torch.diag_embed(squares)).abs().max()) < 1e-4
    assert float(squares.mean()) == pytest.approx(8, rel=0.02)  # chi-squared with 8 degrees
    x, y = torch.randn(2, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = ((w @ (x + y)) - (x.square().sum() + y.square().sum()) / 8**0.5 / 2).exp()
    error = float(found.std()) / len(found) ** 0.5
    assert abs(float(found.mean()) - float((x @ y / 8**0.5).exp())) < 4 * error
    assert torch.equal(
        performer.random_features(100, 8, CPU), performer.random_features(100, 8, CPU)
    )


def error_of(name: str, problem: Problem, seed: int, times: float = 1.0) -> float:
    drawn = make_inputs(problem, CPU, seed)
    inputs = replace(drawn, query=drawn.query * times, key=drawn.key * times)
    exact = reference(problem, inputs, None, torch.arange(problem.seq_len))
    output = load(name).prepare(problem, inputs, None)()
    return float((output.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("causal", [False, True])
def test_the_error_of_performer_falls_with_the_features_on_average(
    causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of logarithms over draws of the features.

    For short queries and keys: the variance of the kernel grows with exp of their squares, so among
    long ones a few pairs decide, and more features help little.
    """
    problem = Problem(batch=1, seq_len=64, d_model=32, heads=4, causal=causal)
    logs = dict.fromkeys(("performer:64", "performer", "performer:512"), 0.0)
    for draw in range(12):
        monkeypatch.setattr(performer, "SEED", draw)
        for name in logs:
            logs[name] += log2(error_of(name, problem, 0, times=0.5)) / 12
    assert logs["performer:64"] > logs["performer"] > logs["performer:512"]
    gain = logs["performer:64"] - logs["performer:512"]
    assert gain == pytest.approx(1.5, abs=0.4)  # 1 / sqrt(features)


def test_linformer_projects_keys_and_values_along_n() -> None:
    problem = Problem(**SHAPE | {"kv_seq_len": 500, "kv_heads": 2, "d_v": 5})
    inputs = make_inputs(problem, CPU, 1)
    e, f = linformer.projections(64, problem, CPU)
    assert e.shape == f.shape == (64, 500)
    assert not torch.equal(e, f)
    assert float(e.var()) == pytest.approx(1 / 64, rel=0.05)
    k, v = (x.repeat_interleave(2, 1) for x in (e @ inputs.key, f @ inputs.value))
    expected = (inputs.query @ k.mT * problem.scale).softmax(-1) @ v
    output = load("linformer:64").prepare(problem, inputs, None)()
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)


def test_linformer_refuses_problems_whose_keys_must_not_be_mixed() -> None:
    mixture = "each projected key mixes all keys"
    for name, changes, reason in (
        ("linformer", {"causal": True}, f"cannot be causal: {mixture}, later ones too"),
        ("linformer:64", {"mask": "padding"}, f"cannot take a mask: {mixture}"),
        ("performer", {"mask": "local"}, "does not compute the mask local"),
    ):
        assert load(name).why_not(Problem(**SHAPE | changes), CPU) == reason


@pytest.mark.parametrize("n_kv", [256, 250, 65, 64, 37])
def test_mean_pooling_attends_to_the_means_of_neighbours(n_kv: int) -> None:
    problem = Problem(**SHAPE | {"kv_seq_len": n_kv, "kv_heads": 2, "d_v": 5})
    inputs = make_inputs(problem, CPU, 1)
    stride = -(-n_kv // 64)
    k, v = (
        torch.stack([part.mean(2) for part in x.split(stride, 2)], 2).repeat_interleave(2, 1)
        for x in (inputs.key, inputs.value)
    )
    expected = (inputs.query @ k.mT * problem.scale).softmax(-1) @ v
    call: Any = load("linformer:pool64").prepare(problem, inputs, None)
    torch.testing.assert_close(call(), expected, rtol=1e-4, atol=1e-5)
    assert call.facts == {"rank": k.shape[2], "projection": "mean pooling"}
    assert call.facts["rank"] <= 64


@pytest.mark.parametrize("name", ["linformer", "linformer:pool256", "performer"])
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
def test_bytes_grow_with_n(name: str, passes: Any) -> None:
    shapes: list[dict[str, Any]] = [{}] + ([{"causal": True}] if name == "performer" else [])
    for shape in shapes:
        long = (
            Problem(batch=1, seq_len=n, d_model=128, heads=2, passes=passes, **shape)
            for n in (1 << 9, 1 << 10, 1 << 11)
        )
        peaks = [weighed(name, problem).peak_bytes for problem in long]
        assert peaks[2] - peaks[1] == 2 * (peaks[1] - peaks[0]) > 0
