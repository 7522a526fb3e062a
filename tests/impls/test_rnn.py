"""The recurrent baselines: their cells, refusals, and the gradients of their own weights."""

from collections.abc import Callable
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


Parts = list[torch.Tensor]
States = tuple[torch.Tensor, ...]
"""The output, and what else a cell carries on."""


def gru(x: Parts, h: Parts, states: States) -> States:
    reset, update = torch.sigmoid(x[0] + h[0]), torch.sigmoid(x[1] + h[1])
    return ((1 - update) * torch.tanh(x[2] + reset * h[2]) + update * states[0],)


def lstm(x: Parts, h: Parts, states: States) -> States:
    i, f, g, o = (a + b for a, b in zip(x, h, strict=True))
    cell = torch.sigmoid(f) * states[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def plain(x: Parts, h: Parts, states: States) -> States:
    return (torch.tanh(x[0] + h[0]),)


@pytest.mark.parametrize(
    ("name", "gates", "cell"), [("rnn", 3, gru), ("rnn:lstm", 4, lstm), ("rnn:tanh", 1, plain)]
)
def test_its_cell_is_as_torch_documents_it(
    name: str, gates: int, cell: Callable[[Parts, Parts, States], States]
) -> None:
    problem = Problem(**SHAPE)
    inputs = make_inputs(problem, CPU, 0)
    layer = rnn.make_layer(problem, CPU, name.partition(":")[2])
    w_i, w_h, b_i, b_h = layer.parameters()
    states: States = (torch.zeros(2, 16), torch.zeros(2, 16))
    found = []
    for token in inputs.query.unbind(1):
        x = (token @ w_i.mT + b_i).chunk(gates, -1)
        h = (states[0] @ w_h.mT + b_h).chunk(gates, -1)
        states = cell([*x], [*h], states)
        found.append(states[0])
    torch.testing.assert_close(load(name).prepare(problem, inputs, None)(), torch.stack(found, 1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scope": "core"}, "a recurrent layer has no queries, keys and values; set scope: layer"),
        (
            {"kv_seq_len": 20},
            "a recurrent layer reads one sequence: kv_seq_len (20) must equal seq_len (12)",
        ),
        ({"mask": "padding"}, "a recurrent layer reads every token; leave out mask padding"),
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
