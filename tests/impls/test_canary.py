"""The judge must be able to fail: implementations that lie a little are found out, at the lengths
where fixed tolerances pass them.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnbench.impls import Problem

LONG = Problem(batch=1, seq_len=16384, d_model=64, heads=1, dtype="bf16")
ROWS = (0, 1, 777, 5000, 12345, 16383)


def test_dropping_the_last_64_of_16384_keys_is_found_out(make_case: Callable) -> None:
    case = make_case(LONG, rows=ROWS)
    assert (
        case.worst_ratio(case.run(lambda: on_rows(case, case.inputs.key, case.inputs.value))) <= 2.0
    )
    assert (
        case.worst_ratio(
            case.run(
                lambda: on_rows(case, case.inputs.key[:, :, :-64], case.inputs.value[:, :, :-64])
            )
        )
        > 2.0
    )


def on_rows(case: object, k: Tensor, v: Tensor) -> Tensor:
    """Attention for the judged queries only; the others do not count."""
    o = scaled_dot_product_attention(case.inputs.query[:, :, case.rows], k, v)
    whole = torch.zeros_like(case.gradient)
    return whole.index_copy(2, case.rows, o)


def test_a_causal_edge_that_is_off_by_one_is_found_out(make_case: Callable) -> None:
    case = make_case(Problem(batch=1, seq_len=64, d_model=32, heads=2, causal=True, dtype="bf16"))
    right = torch.ones(64, 64, dtype=torch.bool).tril()
    assert (
        case.worst_ratio(
            case.run(lambda: scaled_dot_product_attention(*case.inputs, attn_mask=right))
        )
        <= 2.0
    )
    for wrong in (
        right.tril(-1).index_fill(0, torch.tensor([0]), value=True),
        torch.ones_like(right).tril(1),
    ):
        assert (
            case.worst_ratio(
                case.run(
                    lambda mask=wrong: scaled_dot_product_attention(*case.inputs, attn_mask=mask)
                )
            )
            > 2.0
        )


def test_a_wrong_scale_is_found_out(make_case: Callable) -> None:
    case = make_case(Problem(batch=1, seq_len=64, d_model=32, heads=2, dtype="bf16"))
    right = case.problem.scale
    assert (
        case.worst_ratio(case.run(lambda: scaled_dot_product_attention(*case.inputs, scale=right)))
        <= 2.0
    )
    assert (
        case.worst_ratio(
            case.run(lambda: scaled_dot_product_attention(*case.inputs, scale=right * 1.05))
        )
        > 2.0
    )
