from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbench.harness.worker.observe import observed
from attnbench.impls import Problem, load, make_inputs, make_weights
from tests.impls.conftest import BOTTOM_RIGHT

CPU = torch.device("cpu")
SHAPE = Problem(batch=2, seq_len=9, d_model=16, heads=2, scope="layer")


@pytest.mark.parametrize(
    ("variant", "changes", "kernel"),
    [
        ("", {}, "native_mha"),
        ("", {"causal": True}, "native_mha"),
        (":need_weights", {"mask": "padding", "causal": True}, "native_mha"),
        (":no_fast_path", {}, "flash"),
        ("", {"heads": 1, "kv_heads": 1, "d_k": 16, "d_v": 16}, "flash"),
        ("", {"kv_seq_len": 12}, "flash"),
        ("", {"passes": "forward+backward"}, "flash"),
    ],
)
def test_the_fast_path_runs_if_torch_has_it_and_is_reported(
    variant: str, changes: dict, kernel: str
) -> None:
    problem, backend = replace(SHAPE, **changes), load(f"torch_mha{variant}")
    call = backend.prepare(problem, make_inputs(problem, CPU, 0), make_weights(problem, CPU, 1))
    with torch.set_grad_enabled(problem.backward), backend.context(problem):
        assert observed(call)[1].name == kernel


def test_queries_without_keys_give_the_bias_alone(make_case: Callable) -> None:
    shape = Problem(batch=1, seq_len=6, kv_seq_len=4, d_model=8, heads=2, **BOTTOM_RIGHT)
    case = make_case(shape, scope="layer")
    output, gradient, *_ = case.backend("torch_mha")
    assert torch.equal(output[:, :2], case.weights.b_o.detach().expand(1, 2, 8))
    assert not gradient[:, :2].any()
    # Query 2 sees one key: its weight is always 1, so its gradient is zero too.
    assert gradient[:, 3:].all()
