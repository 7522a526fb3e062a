"""Formulas against brute force and against torch's own counter."""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbench import impls
from attnbench.harness.cases.costs import input_bytes, minimal_bytes, work_exps, work_flops
from attnbench.harness.measure.prepared_call import make_tensors, output_shape, prepare_call
from attnbench.impls.backend import leaves
from attnbench.impls.problem import Problem
from attnbench.impls.shared import mask_tensors as masks

SHAPES = [
    {},
    {"kv_seq_len": 9},
    {"heads": 4, "kv_heads": 2},
    {"d_k": 3, "d_v": 5},
    {"causal": True},
    {"mask": "padding"},
    {"mask": "local", "window": 2},
]


@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_masked_pairs_are_no_work(scope, passes):
    whole = Problem(batch=2, seq_len=6, d_model=16, heads=4, scope=scope, passes=passes)
    masked = whole.batch * whole.heads * (6 * 6 - 6 * 7 // 2)
    saved = 2 * masked * (whole.d_k + whole.d_v) * (3 if whole.backward else 1)
    assert work_flops(replace(whole, causal=True)) == work_flops(whole) - saved


@pytest.mark.parametrize(
    ("shape", "scope", "passes"),
    [
        one
        for one in product(SHAPES, ("core", "layer", "block"), ("forward", "backward"))
        if one[1] != "block" or "kv_seq_len" not in one[0]
    ],
)
def test_input_bytes_are_the_tensors_bytes(shape, scope, passes):
    problem = Problem(
        **{"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, **shape}, scope=scope, passes=passes
    )
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    expected = sum(tensor.nbytes for tensor in leaves(*tensors))
    if passes == "backward":
        expected += 2 * 6 * 16 * 4 if scope != "core" else 2 * 4 * 6 * problem.d_v * 4
    assert input_bytes(problem) == expected


def test_a_mask_that_is_given_is_an_input():
    problem = Problem(batch=2, seq_len=6, kv_seq_len=9, d_model=16, heads=4, mask="random")
    matrix = masks.materialized_mask(problem, torch.device("cpu"))
    assert input_bytes(problem) == input_bytes(replace(problem, mask="none")) + matrix.nbytes


MASKS = [
    {},
    {"kv_seq_len": 9},
    {"causal": True},
    {"mask": "random"},
    {"mask": "random", "causal": True},
    {"mask": "local", "window": 1},
    {"mask": "strided", "window": 2, "causal": True},
    {"mask": "strided", "window": 2, "causal": True}
    | {"causal_align": "bottom_right", "kv_seq_len": 9},
    *(
        {"causal": True, "causal_align": align, "kv_seq_len": n}
        for align in ("top_left", "bottom_right")
        for n in (1, 4, 9)
    ),
]
WIDTHS = [
    {},
    {"softcap": 2.0},
    {"sinks": True, "kv_heads": 1},
    {"heads": 4, "kv_heads": 2},
    {"d_k": 3, "d_v": 5},
    {"kv_heads": 1, "d_k": 6, "d_v": 2},
]


def kept(problem: Problem) -> torch.Tensor:
    """The mask written out, [seq_len, kv_seq_len]: True where query i sees key j."""
    if problem.mask != "none":
        return masks.mask_matrix(problem, torch.arange(problem.seq_len))[0]
    ones = torch.ones(problem.seq_len, problem.kv_seq_len, dtype=torch.bool)
    if not problem.causal:
        return ones
    return ones.tril(
        problem.kv_seq_len - problem.seq_len if problem.causal_align == "bottom_right" else 0
    )


class Traffic(NamedTuple):
    """Each input with the part that matters; the output; the part of its gradient that matters.

    `unread`: the bias, which no gradient needs.
    """

    inputs: list[tuple[torch.Tensor, torch.Tensor]]
    output: torch.Tensor
    output_gradient: torch.Tensor
    unread: torch.Tensor | None


def traffic(problem: Problem) -> Traffic:
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    mask = kept(problem)
    queries, keys = mask.any(1), mask.any(0)
    if problem.scope == "core":
        q, k, v = tensors.inputs
        output = torch.zeros(problem.batch, problem.heads, problem.seq_len, problem.d_v)
        inputs = [(q, q[:, :, queries]), (k, k[:, :, keys]), (v, v[:, :, keys])]
        return Traffic(inputs, output, output[:, :, queries], None)
    x, source, _ = tensors.inputs
    weights = tensors.weights
    output = torch.zeros(problem.batch, problem.seq_len, problem.d_model)
    parts = (
        [(x, x[:, queries | keys])]
        if source is x
        else [(x, x[:, queries]), (source, source[:, keys])]
    )
    inputs = [*parts, *((w, w) for w in weights.tensors())]
    return Traffic(inputs, output, output, weights.b_o)


@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_bytes_and_exponentials_are_those_of_the_mask_written_out(scope, passes):
    for mask, width in product(MASKS, WIDTHS):
        problem = Problem(
            **{"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, **mask, **width},
            scope=scope,
            passes=passes,
        )
        inputs, output, output_gradient, unread = traffic(problem)
        if problem.sinks:
            sinks = torch.empty(problem.heads)
            inputs.append((sinks, sinks))
        read = sum(part.nbytes for _, part in inputs)
        gradients = sum(whole.nbytes for whole, _ in inputs)
        unread_bytes = 0 if unread is None else unread.nbytes
        expected = {
            "forward": read + output.nbytes,
            "backward": read - unread_bytes + output_gradient.nbytes + gradients,
            "forward+backward": read + output_gradient.nbytes + output.nbytes + gradients,
        }
        assert minimal_bytes(problem) == expected[passes], problem
        rows = kept(problem).sum(1)  # keys of each query
        each = int(rows.sum()) * (2 if problem.softcap else 1)  # exp, tanh
        each += int((rows > 0).sum()) if problem.sinks else 0
        exps = problem.batch * problem.heads * each
        assert work_exps(problem) == (0 if passes == "backward" else exps), problem


@pytest.mark.parametrize(("align", "n_q", "n_kv"), [("top_left", 4, 9), ("bottom_right", 9, 4)])
def test_what_minimal_bytes_leaves_out_changes_nothing(align, n_q, n_kv):
    """Keys that no query sees and queries that see no key do not change output and gradients.

    Their own gradients are zero.
    """
    sizes = {"batch": 1, "seq_len": n_q, "kv_seq_len": n_kv, "d_model": 8, "heads": 2}
    problem = Problem(**sizes, causal=True, causal_align=align, passes="forward+backward")
    mask = kept(problem)
    unused = (~mask.any(1), ~mask.any(0), ~mask.any(0))
    assert any(bool(part.any()) for part in unused)
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    prepared = prepare_call(problem, impls.load("fused"), tensors, torch.ones(1, 2, n_q, 4))
    with prepared.in_force():
        output, gradients = prepared.result()
        for tensor, part in zip(tensors.inputs, unused, strict=True):
            tensor.detach()[:, :, part] = 7.0
        output_again, gradients_again = prepared.result()
    assert torch.equal(output, output_again)
    assert all(map(torch.equal, gradients, gradients_again))
    assert len(gradients) == len(gradients_again)
    for gradient, part in zip(gradients, unused, strict=True):
        assert not gradient[:, :, part].any()


@pytest.mark.parametrize(
    ("kv_heads", "mask"), [(32, {}), (8, {}), (8, {"mask": "local", "window": 512})]
)
def test_a_decode_step_reads_shared_heads_once_and_only_the_window(kv_heads, mask):
    heads = {"d_model": 4096, "heads": 32, "kv_heads": kv_heads, "dtype": "bf16"}
    corner = {"causal": True, "causal_align": "bottom_right"}
    problem = Problem(batch=2, seq_len=1, kv_seq_len=8192, **heads, **corner, **mask)
    keys = 513 if mask else 8192  # its own token and 512 before it
    cache, queries_and_output = 2 * kv_heads * keys * 128, 2 * 4096
    assert minimal_bytes(problem) == 2 * 2 * (cache + queries_and_output)


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa:math"])
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer", "block"])
def test_flops_of_plain_backends_are_what_torch_counts(name, scope, passes):
    for shape in SHAPES:
        masked = "causal" in shape or "mask" in shape  # these backends multiply all pairs
        if masked or (scope == "block" and "kv_seq_len" in shape):
            continue
        problem = Problem(
            **{"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, **shape},
            scope=scope,
            passes=passes,
        )
        assert counted_by_torch(name, problem) == work_flops(problem), shape


def counted_by_torch(name: str, problem: Problem) -> int:
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    gradient = torch.zeros(output_shape(problem)) if problem.backward else None
    prepared = prepare_call(problem, impls.load(name), tensors, gradient)
    with FlopCounterMode(display=False) as counter, prepared.in_force():
        prepared.run(None)
    return counter.get_total_flops()
