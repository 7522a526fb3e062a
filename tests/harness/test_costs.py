"""Counts against brute force and against torch's own counter."""

from itertools import product

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbench import impls
from attnbench.harness.costs import input_bytes, work_flops
from attnbench.harness.gate import leaves
from attnbench.harness.subject import make_subject, make_tensors
from attnbench.impls.problem import Problem

SHAPES = [
    {},
    {"kv_seq_len": 9},
    {"heads": 4, "kv_heads": 2},
    {"d_k": 3, "d_v": 5},
    {"causal": True},
]


@pytest.mark.parametrize(("shape", "scope", "passes"), list(product(SHAPES, ("core", "layer"), ("forward", "forward+backward"))))
def test_flops_of_fused_are_what_torch_counts(shape, scope, passes):
    problem = Problem(**{"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, **shape}, scope=scope, passes=passes)
    if problem.causal:
        problem_counted = Problem(batch=2, seq_len=6, d_model=16, heads=4, scope=scope, passes=passes)  # fused multiplies masked pairs too
        masked = problem.batch * problem.heads * (6 * 6 - problem.kept_pairs)
        saved = 2 * masked * (problem.d_k + problem.d_v) * (3 if problem.backward else 1)
        assert work_flops(problem) == work_flops(problem_counted) - saved
        return
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    output_like = torch.zeros(2, 6, 16) if scope == "layer" else torch.zeros(2, 4, 6, problem.d_v)
    subject = make_subject(problem, impls.load("fused"), tensors, output_like)
    with FlopCounterMode(display=False) as counter, subject.in_force():
        subject.run(None)
    assert work_flops(problem) == counter.get_total_flops()


@pytest.mark.parametrize(("shape", "scope", "passes"), list(product(SHAPES, ("core", "layer"), ("forward", "backward"))))
def test_input_bytes_are_the_tensors_bytes(shape, scope, passes):
    problem = Problem(**{"batch": 2, "seq_len": 6, "d_model": 16, "heads": 4, **shape}, scope=scope, passes=passes)
    tensors = make_tensors(problem, torch.device("cpu"), 0)
    expected = sum(tensor.nbytes for tensor in leaves(*tensors))
    if passes == "backward":
        expected += 2 * 6 * 16 * 4 if scope == "layer" else 2 * 4 * 6 * problem.d_v * 4
    assert input_bytes(problem) == expected


def test_heads_do_not_change_the_work_at_fixed_width():
    assert len({work_flops(Problem(batch=1, seq_len=128, d_model=64, heads=h, scope="layer")) for h in (1, 2, 8, 64)}) == 1
