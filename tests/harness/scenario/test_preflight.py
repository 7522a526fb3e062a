"""The predicted wall is where the formula crosses the budget."""

import pytest
import torch

from attnbench.harness.cases.case import Wall, wall_of
from attnbench.harness.cases.costs import input_bytes
from attnbench.harness.scenario.preflight import predict
from attnbench.impls import Problem, load

CPU = torch.device("cpu")
BUDGET = 1 << 30


def wall(backend: str, **changes: object) -> Wall:
    sizes: dict = {"batch": 1, "seq_len": 1, "d_model": 512, "heads": 8, **changes}
    return Wall(backend=backend, problem=Problem(**sizes), kv_seq_len=sizes.get("kv_seq_len"))


CHANGES = [{}, {"causal": True}, {"passes": "forward+backward"}, {"scope": "layer"}]
CHANGES += [{"kv_seq_len": 1000}, {"batch": 7}]


@pytest.mark.parametrize("backend", ["naive", "fused", "sdpa"])
@pytest.mark.parametrize("changes", CHANGES)
def test_the_predicted_length_is_the_last_within_the_budget(backend: str, changes: dict) -> None:
    sought = wall(backend, **changes)
    found = predict(sought, CPU, BUDGET)
    n = found["predicted_seq_len"]
    if n is None:
        assert found["predicted_reason"]
        return

    def needed(seq_len: int) -> int:
        problem = sought.at(seq_len).problem
        peak = load(backend).peak_bytes(problem, CPU, torch.get_num_threads())
        return input_bytes(problem) + peak

    assert found["predicted_source"] == "formula"
    assert needed(n) <= BUDGET < needed(n + 1)


def test_a_backend_that_cannot_run_here_has_no_prediction_but_a_reason() -> None:
    assert predict(wall("sdpa:cudnn"), CPU, BUDGET) == {
        "exactness": "exact",
        "input_order": "heads",
        "predicted_seq_len": None,
        "predicted_source": None,
        "predicted_reason": "sdpa:cudnn cannot run here",
    }


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("backend", ["naive", "fused", "sdpa", "sdpa:flash"])
def test_a_dtype_without_a_formula_is_bounded_by_fp32(backend: str, dtype: str) -> None:
    found = predict(wall(backend, dtype=dtype), CPU, BUDGET)
    in_fp32 = predict(wall(backend), CPU, BUDGET)["predicted_seq_len"]
    assert found["predicted_source"] == "nearest"
    assert found["predicted_reason"] == (
        f"no formula for {backend} in {dtype}; upper bound (fp32 formula)"
    )
    # its inputs are half as large
    assert in_fp32 <= found["predicted_seq_len"] <= 2 * in_fp32


FIXED = [{}, {"causal": True}, {"kv_seq_len": 1, "seq_len": 2}]
FIXED += [{"kv_seq_len": 77, "causal": True, "causal_align": "bottom_right"}]


@pytest.mark.parametrize("changes", FIXED)
def test_a_wall_comes_back_from_its_fields_and_follows_self_attention(changes: dict) -> None:
    sought = wall("fused", **changes)
    assert wall_of(sought.fields()) == sought
    assert "seq_len" not in sought.fields()
    assert sought.at(900).problem.kv_seq_len == changes.get("kv_seq_len", 900)
