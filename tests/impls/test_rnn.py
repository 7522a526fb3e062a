"""The recurrent baselines: their cells, refusals, and the gradients of their own weights."""

from dataclasses import replace
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
        load("rnn").prepare(problem, replace(inputs, query=tokens), None)()
        for tokens in (x, changed)
    )
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


@pytest.mark.parametrize(
    ("name", "cell"),
    [("rnn", torch.nn.GRU), ("rnn:lstm", torch.nn.LSTM), ("rnn:tanh", torch.nn.RNN)],
)
def test_it_is_torchs_layer_from_the_first_token_to_the_last(name: str, cell: type) -> None:
    problem = Problem(**SHAPE)
    inputs = make_inputs(problem, CPU, 0)
    layer = rnn.make_layer(problem, CPU, name.partition(":")[2])
    assert type(layer) is cell
    by_token = layer(inputs.query.transpose(0, 1).contiguous().transpose(0, 1))[0]
    torch.testing.assert_close(load(name).prepare(problem, inputs, None)(), by_token)
    alone = torch.cat([layer(one[None])[0] for one in inputs.query])
    torch.testing.assert_close(by_token, alone)


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
    whole, half = (rnn.make_layer(Problem(**SHAPE, dtype=dtype), CPU) for dtype in ("fp32", "bf16"))
    for w, rounded in zip(whole.parameters(), half.parameters(), strict=True):
        assert torch.equal(w.bfloat16(), rounded)
        assert float(w.abs().max()) <= 16**-0.5
