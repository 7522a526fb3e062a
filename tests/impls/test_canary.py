"""The check of these tests can fail: it finds small errors where fixed tolerances pass them."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnbench.impls import Problem

LONG = Problem(batch=1, seq_len=16384, d_model=64, heads=1, dtype="bf16")
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
