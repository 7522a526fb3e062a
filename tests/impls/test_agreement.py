"""Every backend that names() lists, on one list of problems: forward and gradients, in every dtype
and both scopes.

Exact backends are checked against the reference, the others for shape, finite numbers and zeros;
what a backend refuses, or needs a device for that is not here, is no test. A backend that compiles
takes seconds for each of these 90 cases. It gets the problems of COMPILED only, each in one dtype
and scope, so that every such pair occurs, on a CPU those of OFTEN each time; `make nightly` runs
all.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from attnbench.harness.measure.prepared_call import Tensors, output_shape, prepare_call
from attnbench.impls import Problem, exactness, input_order, load, missing, names
from tests.impls.conftest import MASKED, PROBLEMS

LIMIT_RATIO = 2.0
ALL = PROBLEMS | MASKED
KINDS = tuple(product(("fp32", "bf16", "fp16"), ("core", "layer")))
COMPILED = (
    "odd",
    "wide_values",
    "multi_query",
    "causal",
    "top_left_wide",
    "bottom_right_grouped",
    "decode",
    "empty_rows",
)
COMPILED_MASKED = ("padded_causal", "random", "local_causal", "ragged_causal", "ragged_local")
OFTEN = ("multi_query", "bottom_right_grouped", "empty_rows", "random", "ragged_local")
BACKENDS = {name: load(name) for name in names() if missing(name) is None}
DEVICES = {"cpu": [], **({"cuda": [pytest.mark.gpu]} if torch.cuda.is_available() else {})}
# Over ten draws the gradient of W_q's bias, 32 numbers, is 0.7 to 2.3 times as far off as the
# textbook's: tests/harness/measure/test_correctness.py judges it by the rule that users have.
JUDGED_BY_THE_HARNESS = {("torch_mha", "padded_cross"), ("torch_mha:no_fast_path", "padded_cross")}


def passes_of(name: str, problem: Problem, device: str) -> str | None:
    """Those that the backend computes: both, forward alone, or None."""
    for passes in ("forward+backward", "forward"):
        if not BACKENDS[name].why_not(replace(problem, passes=passes), torch.device(device)):
            return passes
    return None


def kinds_of(name: str, problem: str) -> tuple[tuple[str, str], ...]:
    """The dtypes and scopes to try: one, of few problems, if the backend compiles."""
    if BACKENDS[name].compiles:
        if problem in COMPILED:
            return (KINDS[COMPILED.index(problem) % len(KINDS)],)
        return KINDS[:1] if problem in COMPILED_MASKED else ()
    if (name, problem) in JUDGED_BY_THE_HARNESS:
        return tuple(kind for kind in KINDS if kind != ("fp16", "layer"))
    return KINDS


def cases(*, exact: bool) -> list[Any]:
    """Each backend with each problem that it computes, on each device that is here."""
    found = []
    for (name, backend), device in product(BACKENDS.items(), DEVICES):
        if (exactness(name) == "exact") != exact or backend.unavailable(torch.device(device)):
            continue
        for problem, shape in ALL.items():
            kinds = (replace(shape, dtype=a, scope=b) for a, b in kinds_of(name, problem))
            if any(passes_of(name, one, device) for one in kinds):
                marks = [pytest.mark.long] if backend.compiles else []
                seldom = backend.compiles and device == "cpu" and problem not in OFTEN
                marks += [*DEVICES[device], *([pytest.mark.nightly] if seldom else [])]
                found.append(pytest.param(name, problem, device, marks=marks))
    return found


@pytest.mark.parametrize(("name", "problem", "device"), cases(exact=True))
def test_backend_is_as_close_as_the_same_dtype_reference(
    name: str, problem: str, device: str, make_case: Callable
) -> None:
    check(name, problem, make_case, device, kinds_of(name, problem))


@pytest.mark.long
def test_backends_that_compile_are_among_them(require: Callable) -> None:
    require("g++")
    assert {"compiled", "flex"} <= {case.values[0] for case in cases(exact=True)}


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, one in BACKENDS.items() if one.compiles])
def test_backend_that_compiles_is_as_close_in_every_dtype_and_scope(
    name: str, make_case: Callable
) -> None:
    for problem in PROBLEMS:
        check(name, problem, make_case, "cpu", KINDS)


def check(
    name: str, problem: str, make_case: Callable, device: str, kinds: tuple[tuple[str, str], ...]
) -> None:
    """Where the backend computes it; forward only if it has no gradients."""
    too_far = {}
    for dtype, scope in kinds:
        one = replace(ALL[problem], dtype=dtype, scope=scope)
        if passes := passes_of(name, one, device):
            order = input_order(name, replace(one, passes="forward+backward"))
            case = make_case(ALL[problem], dtype=dtype, scope=scope, device=device, order=order)
            results = case.backend_forward(name) if passes == "forward" else case.backend(name)
            assert results[0].dtype == case.inputs.query.dtype
            if (ratio := case.worst_ratio(results)) > LIMIT_RATIO:
                too_far[dtype, scope] = ratio
    assert not too_far


@pytest.mark.parametrize(("name", "problem", "device"), cases(exact=False))
def test_backend_that_is_not_exact_gives_finite_numbers_of_the_right_shape(
    name: str, problem: str, device: str, make_case: Callable
) -> None:
    """Output and gradients, and zeros for queries without keys."""
    for dtype, scope in KINDS:
        p = replace(ALL[problem], dtype=dtype, scope=scope, passes="forward+backward")
        if passes_of(name, p, device) != p.passes:
            continue
        case = make_case(ALL[problem], dtype=dtype, scope=scope, device=device)
        prepared = prepare_call(
            p, BACKENDS[name], Tensors(case.inputs, case.weights), case.gradient
        )
        with prepared.in_force():
            output, gradients = prepared.result()
        assert output.shape == output_shape(p)
        results, like = (output, *gradients), (case.gradient, *prepared.targets)
        for result, expected in zip(results, like, strict=True):
            assert (result.shape, result.dtype) == (expected.shape, case.inputs.query.dtype)
            assert bool(torch.isfinite(result).all())
        if p.scope == "core":
            assert not output[:, :, : p.empty_rows].any()
            assert output[:, :, p.empty_rows :].any(-1).all()


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa", "torch_mha"])
def test_call_can_be_repeated_with_gradients(name: str, make_case: Callable) -> None:
    case = make_case(Problem(batch=1, seq_len=8, d_model=8, heads=2), scope="layer")
    call = load(name).prepare(case.problem, case.inputs, case.weights)
    first, second = case.run(call), case.run(call)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
