from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbench.harness.worker.kernel import observed
from attnbench.impls import Problem, load, make_inputs, make_weights

CPU = torch.device("cpu")
SHAPE = Problem(batch=2, seq_len=9, d_model=16, heads=2, scope="layer")


@pytest.mark.parametrize(
    ("changes", "kernel"),
    [({}, "native_mha"), ({"causal": True}, "native_mha"), ({"heads": 1, "kv_heads": 1, "d_k": 16, "d_v": 16}, "flash"),
     ({"kv_seq_len": 12}, "flash"), ({"passes": "forward+backward"}, "flash")],
)  # fmt: skip
def test_the_fast_path_is_taken_where_torch_has_it_and_told(changes: dict, kernel: str) -> None:
    problem = replace(SHAPE, **changes)
    call = load("torch_mha").prepare(
        problem, make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1)
    )
    with torch.set_grad_enabled(problem.backward):
        assert observed(call)[1] == kernel


def test_queries_without_keys_give_the_bias_alone(make_case: Callable) -> None:
    shape = Problem(
        batch=1,
        seq_len=6,
        kv_seq_len=4,
        d_model=8,
        heads=2,
        causal=True,
        causal_align="bottom_right",
    )
    case = make_case(shape, scope="layer")
    output, gradient, *_ = case.backend("torch_mha")
    assert torch.equal(output[:, :2], case.weights.b_o.detach().expand(1, 2, 8))
    assert not gradient[:, :2].any()
    assert gradient[
        :, 3:
    ].all()  # a query that sees one key has none either: its weight is 1 whatever it is


@pytest.mark.parametrize("passes", ["backward", "forward+backward"])
def test_gradients_of_the_joined_weights_are_found_again_and_again(passes: str) -> None:
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


def test_what_the_module_cannot_be_is_said_in_words() -> None:
    reasons = {
        "nn.MultiheadAttention is a whole layer; use scope: layer": {"scope": "core"},
        "nn.MultiheadAttention has no grouped heads": {"kv_heads": 1},
        "nn.MultiheadAttention has heads of d_model / heads = 8 columns; here they have 8 and 12": {
            "d_v": 12
        },
    }
    for reason, changes in reasons.items():
        assert load("torch_mha").why_not(replace(SHAPE, **changes), CPU) == reason
