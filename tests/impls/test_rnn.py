"""The recurrent baseline: its cell, its refusals, and the gradients of its own weights."""

from typing import Any

import pytest
import torch

from attnbench.harness.measure.prepared_call import make_tensors, prepare_call
from attnbench.impls import Problem, load, make_inputs, rnn

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {"batch": 2, "seq_len": 12, "d_model": 16, "heads": 4, "scope": "layer"}


def test_a_token_depends_on_the_whole_past_and_nothing_else() -> None:
    problem = Problem(**SHAPE)
    x = make_inputs(problem, CPU, 0).query
    changed = x.clone()
    changed[:, 5] += 1
    inputs = make_inputs(problem, CPU, 0)
    before, after = (
        load("rnn").prepare(problem, inputs._replace(query=tokens), None)()
        for tokens in (x, changed)
    )
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


def test_it_is_a_gated_recurrent_unit() -> None:
    """The cell as torch documents it."""
    problem = Problem(**SHAPE)
    x = make_inputs(problem, CPU, 0).query
    w_i, w_h, b_i, b_h = rnn.make_gru(problem, CPU).parameters()
    state, found = torch.zeros(2, 16), []
    for token in x.unbind(1):
        i_r, i_z, i_n = (token @ w_i.mT + b_i).chunk(3, -1)
        h_r, h_z, h_n = (state @ w_h.mT + b_h).chunk(3, -1)
        reset, update = torch.sigmoid(i_r + h_r), torch.sigmoid(i_z + h_z)
        state = (1 - update) * torch.tanh(i_n + reset * h_n) + update * state
        found.append(state)
    output = load("rnn").prepare(problem, make_inputs(problem, CPU, 0), None)()
    torch.testing.assert_close(output, torch.stack(found, 1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scope": "core"}, "a recurrent layer has no queries, keys and values; set scope: layer"),
        (
            {"kv_seq_len": 20},
            "a recurrent layer reads one sequence, and kv_seq_len (20) is not seq_len (12)",
        ),
        ({"mask": "padding"}, "a recurrent layer carries every token on, and has no mask padding"),
    ],
)
def test_problems_that_it_cannot_compute_are_refused(changes: dict[str, Any], reason: str) -> None:
    assert load("rnn").why_not(Problem(**SHAPE | changes), CPU) == reason


def test_gradients_are_those_of_its_own_weights() -> None:
    problem = Problem(**SHAPE, passes="forward+backward")
    tensors = make_tensors(problem, CPU, 0)
    prepared = prepare_call(problem, load("rnn"), tensors, torch.randn(2, 12, 16))
    with prepared.in_force():
        output, gradients = prepared.result()
    assert output.requires_grad
    shapes = [tuple(gradient.shape) for gradient in gradients]
    assert shapes == [(2, 12, 16), (48, 16), (48, 16), (48,), (48,)]
    assert all(gradient.any() for gradient in gradients)


def test_weights_are_the_same_in_every_dtype_but_for_rounding() -> None:
    whole, half = (rnn.make_gru(Problem(**SHAPE, dtype=dtype), CPU) for dtype in ("fp32", "bf16"))
    for w, rounded in zip(whole.parameters(), half.parameters(), strict=True):
        assert torch.equal(w.bfloat16(), rounded)
        assert float(w.abs().max()) <= 16**-0.5
