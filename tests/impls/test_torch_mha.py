from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbench.harness.worker.kernel import observed
from attnbench.impls import Problem, load, make_inputs, make_weights
from tests.impls.conftest import BOTTOM_RIGHT

CPU = torch.device("cpu")
SHAPE = Problem(batch=2, seq_len=9, d_model=16, heads=2, scope="layer")


@pytest.mark.parametrize(
    ("changes", "kernel"),
    [
        ({}, "native_mha"),
        ({"causal": True}, "native_mha"),
        ({"heads": 1, "kv_heads": 1, "d_k": 16, "d_v": 16}, "flash"),
        ({"kv_seq_len": 12}, "flash"),
        ({"passes": "forward+backward"}, "flash"),
    ],
)
def test_the_fast_path_runs_if_torch_has_it_and_is_reported(changes: dict, kernel: str) -> None:
    problem = replace(SHAPE, **changes)
    call = load("torch_mha").prepare(
        problem, make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1)
    )
    with torch.set_grad_enabled(problem.backward):
        assert observed(call)[1].name == kernel


@pytest.mark.parametrize("changes", [{}, {"mask": "padding"}, {"mask": "padding", "causal": True}])
@pytest.mark.parametrize("variant", ["", ":no_fast_path", ":need_weights"])
def test_every_variant_is_right_with_and_without_padding(variant: str, changes: dict) -> None:
    problem = replace(SHAPE, batch=4, **changes)
    inputs, weights = make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1)
    backend = load(f"torch_mha{variant}")
    assert backend.why_not(problem, CPU) is None
    with torch.no_grad(), backend.context(problem):
        output, kernel = observed(backend.prepare(problem, inputs, weights))
    assert torch.allclose(output, load("naive").prepare(problem, inputs, weights)(), atol=1e-5)
    assert (kernel.name == "native_mha") == (variant != ":no_fast_path")


def test_queries_without_keys_give_the_bias_alone(make_case: Callable) -> None:
    shape = Problem(batch=1, seq_len=6, kv_seq_len=4, d_model=8, heads=2, **BOTTOM_RIGHT)
    case = make_case(shape, scope="layer")
    output, gradient, *_ = case.backend("torch_mha")
    assert torch.equal(output[:, :2], case.weights.b_o.detach().expand(1, 2, 8))
    assert not gradient[:, :2].any()
    # Query 2 sees one key: its weight is always 1, so its gradient is zero too.
    assert gradient[:, 3:].all()


@pytest.mark.parametrize("passes", ["backward", "forward+backward"])
def test_gradients_of_the_concatenated_weights_can_be_computed_repeatedly(passes: str) -> None:
    problem = replace(SHAPE, passes=passes)
    inputs, weights = make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1)
    call = load("torch_mha").prepare(problem, inputs, weights)
    output = call()
    first, second = (
        torch.autograd.grad(
            output if passes == "backward" else call(),
            [inputs.query, weights.w_k, weights.b_v],
            torch.ones_like(output),
            retain_graph=passes == "backward",
        )
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
