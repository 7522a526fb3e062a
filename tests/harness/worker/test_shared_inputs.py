"""Backends of one problem share inputs, unless they want them in another order of memory."""

from dataclasses import replace

from attnbench.harness.cases.case import Case
from attnbench.harness.worker.shared_inputs import by_inputs
from attnbench.impls.problem import Problem

SMALL = Problem(batch=1, seq_len=8, d_model=64, heads=2)


def backends(cases):
    return [[case.backend for case in same] for same in by_inputs(cases).values()]


def cases(problem, *names):
    return [Case(backend=name, problem=problem) for name in names]


def test_equal_orders_share_whatever_stands_between_them():
    mixed = cases(SMALL, "fused", "hf:sdpa", "sdpa", "hf:eager")
    assert backends(mixed) == [["fused", "sdpa"], ["hf:sdpa", "hf:eager"]]


def test_a_layer_has_the_same_inputs_for_all():
    layer = cases(replace(SMALL, scope="layer"), "fused", "hf:sdpa")
    assert backends(layer) == [["fused", "hf:sdpa"]]


def test_problems_share_nothing():
    two = cases(SMALL, "fused") + cases(replace(SMALL, seq_len=16), "fused")
    assert backends(two) == [["fused"], ["fused"]]
