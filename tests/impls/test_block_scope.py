"""Scope block: every backend's layer inside a pre-norm block, against float64 and block.py."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnbench.impls import Block, Problem, load, make_inputs, make_weights
from attnbench.impls.backend import BlockWeights
from tests.harness.measure.test_peak_memory import weighed
from tests.impls.conftest import MASKED, PROBLEMS

CPU = torch.device("cpu")
BACKENDS = ("naive", "fused", "sdpa", "sdpa:math", "torch_mha", "sparse_local", "sparse_strided")
# Of each kind that some backend computes; test_agreement.py has every problem as a layer.
SOME = ("odd", "multi_query", "causal", "padded", "local_causal", "strided", "ragged")
SELF = {name: replace((PROBLEMS | MASKED)[name], scope="block") for name in SOME}


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backends_block_is_within_the_limit_of_the_textbooks(
    backend: str, make_case: Callable[..., Any]
) -> None:
    checked = 0
    for name, problem in SELF.items():
        if load(backend).why_not(replace(problem, passes="forward+backward"), CPU):
            continue
        checked += 1
        case = make_case(problem)
        assert case.worst_ratio(case.backend(backend)) <= 2, name
    assert checked


def test_a_block_to_measure_is_the_module() -> None:
    problem = Problem(batch=2, seq_len=9, d_model=16, heads=4, scope="block", causal=True)
    inputs, weights = make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1)
    assert isinstance(weights, BlockWeights)
    module = Block(problem)
    given = {
        "norm_1.weight": weights.gain_1,
        "norm_1.bias": weights.shift_1,
        "norm_2.weight": weights.gain_2,
        "norm_2.bias": weights.shift_2,
        "up.weight": weights.w_up,
        "up.bias": weights.b_up,
        "down.weight": weights.w_down,
        "down.bias": weights.b_down,
    } | {
        f"attention.{name}": getattr(weights, name)
        for name in vars(module.attention)["_parameters"]
    }
    module.load_state_dict(given)
    measured = load("fused").prepare(problem, inputs, weights)()
    assert torch.allclose(measured, module(inputs.query)[0], atol=1e-6)


@pytest.mark.parametrize("backend", ["naive", "fused", "sdpa"])
@pytest.mark.parametrize("n", [16, 300])
def test_peak_bytes_are_predicted_by_the_formula(backend: str, n: int) -> None:
    for shape in ({}, {"causal": True}, {"batch": 3}):
        problem = Problem(**{"batch": 1, "seq_len": n, "d_model": 32, "heads": 4} | shape,
                          scope="block")  # fmt: skip
        measured = weighed(backend, problem).peak_bytes
        formula = load(backend).peak_bytes(problem, CPU, torch.get_num_threads())
        assert formula == measured, (shape, formula, measured)
