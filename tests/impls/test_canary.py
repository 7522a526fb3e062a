"""The check must be able to fail: it finds small errors at lengths where fixed tolerances pass."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnbench.impls import Problem

LONG = Problem(batch=1, seq_len=16384, d_model=64, heads=1, dtype="bf16")
SHORT = Problem(batch=1, seq_len=64, d_model=32, heads=2, dtype="bf16")
CAUSAL = Problem(batch=1, seq_len=64, d_model=32, heads=2, causal=True, dtype="bf16")
ROWS = (0, 1, 777, 5000, 12345, 16383)


def test_dropping_the_last_64_of_16384_keys_is_noticed(make_case: Callable) -> None:
    case = make_case(LONG, rows=ROWS)

    def ratio(keys: int) -> float:
        def call() -> Tensor:
            """Attention for the checked queries only; the others do not count."""
            _, k, v = case.inputs
            o = sdpa(case.inputs.query[:, :, case.rows], k[:, :, :keys], v[:, :, :keys])
            return torch.zeros_like(case.gradient).index_copy(2, case.rows, o)

        return case.worst_ratio(case.run(call))

    assert ratio(16384) <= 2.0 < ratio(16384 - 64)


def test_a_causal_edge_that_is_off_by_one_is_noticed(make_case: Callable) -> None:
    case = make_case(CAUSAL)

    def ratio(mask: Tensor) -> float:
        return case.worst_ratio(case.run(lambda: sdpa(*case.inputs, attn_mask=mask)))

    right = torch.ones(64, 64, dtype=torch.bool).tril()
    short = right.tril(-1).index_fill(0, torch.tensor([0]), value=True)
    long = torch.ones_like(right).tril(1)
    assert ratio(right) <= 2.0
    assert ratio(short) > 2.0
    assert ratio(long) > 2.0


def test_a_wrong_scale_is_noticed(make_case: Callable) -> None:
    case = make_case(SHORT)

    def ratio(scale: float) -> float:
        return case.worst_ratio(case.run(lambda: sdpa(*case.inputs, scale=scale)))

    assert ratio(case.problem.scale) <= 2.0 < ratio(case.problem.scale * 1.05)
