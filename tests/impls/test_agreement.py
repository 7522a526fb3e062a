"""Every backend that names() finds, on one list of problems, forward and gradients, in every dtype and both scopes.

A backend that compiles takes seconds for each of these 90 cases. It is tried here on the problems in TURNS, each with one dtype and
scope, so that every pair of them comes up; `make slow` tries it on all.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product

import pytest
import torch

from attnbench.impls import Problem, load, missing, names
from tests.impls.conftest import PROBLEMS

LIMIT_RATIO = 2.0
EVERY = tuple(product(("fp32", "bf16", "fp16"), ("core", "layer")))
TURNS = ("odd", "wide_values", "multi_query", "causal", "top_left_wide", "bottom_right_grouped", "decode", "empty_rows")
COMPILE = [name for name in names() if missing(name) is None and load(name).compiles]
CASES = [(name, problem) for name in names() for problem in (TURNS if name in COMPILE else PROBLEMS)]


@pytest.mark.parametrize(("name", "problem"), CASES)
def test_backend_is_as_close_as_an_honest_implementation(name: str, problem: str, make_case: Callable, require: Callable) -> None:
    if name in COMPILE and load(name).unavailable(torch.device("cpu")):
        require("g++")
    judge(name, PROBLEMS[problem], make_case, "cpu", variations(name, problem))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILE)
def test_backend_that_compiles_is_as_close_in_every_dtype_and_scope(name: str, shape: Problem, make_case: Callable) -> None:
    judge(name, shape, make_case, "cpu", EVERY)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "problem"), CASES)
def test_backend_is_as_close_on_cuda(name: str, problem: str, make_case: Callable) -> None:
    judge(name, PROBLEMS[problem], make_case, "cuda", variations(name, problem))


def variations(name: str, problem: str) -> Iterable[tuple[str, str]]:
    return [EVERY[TURNS.index(problem) % len(EVERY)]] if name in COMPILE else EVERY


def judge(name: str, shape: Problem, make_case: Callable, device: str, kinds: Iterable[tuple[str, str]]) -> None:
    """In these dtypes and scopes, forward alone where there are no gradients; skips, with the reasons, if all of them are refused."""
    ran, reasons, too_far = 0, set(), {}
    for dtype, scope in kinds:
        case = make_case(shape, dtype=dtype, scope=scope, device=device)
        refuses = load(name).why_not if missing(name) is None else lambda *_: missing(name)
        no_gradients = refuses(case.problem, torch.device(device))
        if no_gradients and refuses(replace(case.problem, passes="forward"), torch.device(device)):
            reasons.add(no_gradients)
            continue
        ran += 1
        results = case.backend_forward(name) if no_gradients else case.backend(name)
        assert results[0].dtype == case.inputs.query.dtype
        ratio = case.worst_ratio(results)
        if ratio > LIMIT_RATIO:
            too_far[dtype, scope] = ratio
    assert not too_far
    if not ran:
        pytest.skip("; ".join(sorted(reasons)))


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa", "sdpa:math"])
def test_queries_without_keys_give_zeros_and_zero_gradients(name: str, make_case: Callable) -> None:
    shape = Problem(batch=1, seq_len=6, kv_seq_len=4, d_model=8, heads=2, causal=True, causal_align="bottom_right")
    case = make_case(shape)
    output, q_gradient, *_ = case.backend(name)
    assert not output[:, :, :2].any()
    assert not q_gradient[:, :, :2].any()
    assert output[:, :, 2:].all()


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa"])
def test_call_can_be_repeated_with_gradients(name: str, make_case: Callable) -> None:
    case = make_case(Problem(batch=1, seq_len=8, d_model=8, heads=2), scope="layer")
    call = load(name).prepare(case.problem, case.inputs, case.weights)
    first, second = case.run(call), case.run(call)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
