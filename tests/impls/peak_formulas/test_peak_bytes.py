"""The formulas against the allocator's own events, to the byte except for scalars."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from attnbench.harness.measure.prepared_call import make_tensors, output_shape
from attnbench.impls import Inputs, Problem, input_order, load, missing
from attnbench.impls.backend import leaves
from attnbench.impls.masks import needs_matrix
from attnbench.impls.peak_formulas import nearest
from attnbench.impls.peak_formulas.flash import takes_flash
from attnbench.impls.problem_fields import Scope
from attnbench.impls.shared.sdpa_kernels import would_run
from tests.budget import first
from tests.harness.measure.test_peak_memory import weighed
from tests.impls.conftest import MASKED, PROBLEMS

pytestmark = pytest.mark.filterwarnings("ignore")  # the profiler's warnings without a GPU

FORWARD_BYTES, TRAINING_BYTES = 16, 64  # scalars that torch wraps as tensors for a moment
WINDOWS = ("local", "chunked")
SHAPES = {
    name: one
    for name, one in {**PROBLEMS, **MASKED}.items()
    if one.mask in ("none", *WINDOWS) and not one.lengths
}
CPU = torch.device("cpu")
LONG = Problem(batch=1, seq_len=200, d_model=16, heads=2)  # another tile of the flash kernel
LONGER = Problem(batch=1, seq_len=800, d_model=8, heads=1)  # and the largest one


def peak(run: Callable[[], object]) -> int:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        result = run()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    del result
    alive = highest = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        alive += event.nbytes()
        highest = max(highest, alive)
    return highest


def measured_peak(name: str, problem: Problem) -> int:
    """Of the second call, with its gradients if the problem has some."""
    backend = load(name)
    inputs, weights = make_tensors(problem, CPU, 1, input_order(name, problem))
    gradient = torch.ones(output_shape(problem), dtype=inputs.query.dtype)
    with backend.context(problem), torch.set_grad_enabled(problem.backward):
        call, tensors = backend.prepare(problem, inputs, weights), leaves(inputs, weights)

        def run() -> object:
            output = call()
            return output, problem.backward and torch.autograd.grad(output, tensors, gradient)

        run()
        return peak(run)


def held(name: str, problem: Problem) -> str:
    """What is known of the peak, "exact", a "bound" or nothing; fails if that is wrong."""
    backend, more, known = load(name), 0, "exact"
    found = backend.peak_bytes(problem, CPU, 1)
    if found is None:
        near = next(nearest(name, problem, 1), None)
        found = near and backend.peak_bytes(near.problem, CPU, 1)
        if near is None or found is None:
            return ""
        more, known = near.more_bytes, "bound"
    measured = measured_peak(name, problem)
    assert measured <= found + more + FORWARD_BYTES, problem
    assert known == "bound" or measured >= found - FORWARD_BYTES, problem
    return known


def compare(name: str, shape: Problem, **changes: object) -> bool:
    """Whether there is a formula; fails if it is wrong."""
    problem, backend = replace(shape, **changes), load(name)
    if backend.why_not(problem, CPU):
        return False
    predicted = backend.peak_bytes(problem, CPU, torch.get_num_threads())
    if predicted is None:
        return False
    most = TRAINING_BYTES if problem.backward else FORWARD_BYTES
    assert abs(measured_peak(name, problem) - predicted) <= most
    return True


@pytest.mark.parametrize("name", ["sdpa", "sdpa:math", "sdpa:flash"])
def test_peak_of_sdpa_is_as_predicted_where_it_is_known(name: str, shape: Problem) -> None:
    unknown = name == "sdpa:math" and shape.causal_align == "bottom_right"
    for problem in (replace(shape, scope=scope) for scope in ("core", "layer")):
        assert compare(name, problem) or unknown or load(name).why_not(problem, CPU)
    compare(name, shape, passes="forward+backward")


@pytest.mark.parametrize("name", ["hf", "hf:sdpa"])
def test_transformers_sdpa_adds_nothing_to_inputs_of_a_model(name: str, shape: Problem) -> None:
    if why := missing(name):
        pytest.skip(why)
    known = compare(name, shape)
    square = shape.kv_seq_len == shape.seq_len
    plain = (square or not shape.causal) and shape.d_k == shape.d_v
    assert known or not plain
    assert not compare(name, shape, passes="forward+backward")


@pytest.mark.parametrize("shape", [LONG, LONGER, replace(LONG, causal=True)])
@pytest.mark.parametrize("threads", [1, 2])
def test_flash_peak_follows_the_tiles_and_the_threads(shape: Problem, threads: int) -> None:
    torch.set_num_threads(threads)
    assert compare("sdpa:flash", shape)
    assert compare("sdpa", shape, scope="layer")
    assert compare("sdpa:flash", shape, passes="forward+backward")


@pytest.fixture(params=["", "while torch.compile watches frames"])
def frames(request: pytest.FixtureRequest) -> Iterator[None]:
    """As in a process that has compiled something: callers keep arguments until calls return."""
    before = set_eval_frame(False) if request.param else None
    yield
    if request.param:
        set_eval_frame(before)


@pytest.mark.usefixtures("frames")
@pytest.mark.parametrize(
    "scores", first(2, [{}, {"softcap": 2, "sinks": True}, {"softcap": 2.0}, {"sinks": True}])
)
@pytest.mark.parametrize("name", ["naive", "fused"])
def test_peaks_are_as_predicted_in_both_scopes_also_with_softcap_and_sinks(
    name: str, scores: dict[str, Any], shape: Problem
) -> None:
    with_scores = replace(shape, **scores)
    for scope in ("core", "layer"):
        assert compare(name, with_scores, scope=scope)
    assert compare(name, with_scores, passes="forward+backward") or shape.empty_rows
    compare(name, with_scores, passes="forward+backward", scope="layer")
    check_backward_alone(name, with_scores)


@pytest.mark.usefixtures("frames")
@pytest.mark.parametrize("name", ["naive", "fused"])
@pytest.mark.parametrize("mask", [name for name, one in MASKED.items() if one.mask in WINDOWS])
def test_peaks_under_a_window_or_in_chunks_are_as_predicted(name: str, mask: str) -> None:
    window = replace(MASKED[mask], lengths="")
    one = {"heads": 1, "kv_heads": 1, "d_k": 1, "d_v": 1}  # where making the mask needs most
    for problem in (window, replace(window, **one)):
        for scope in ("core", "layer"):
            assert compare(name, problem, scope=scope)
        compare(name, problem, passes="forward+backward")
        check_backward_alone(name, problem)


@pytest.mark.parametrize("name", ["sdpa", "sdpa:flash"])
@pytest.mark.parametrize("shape", [one for one in SHAPES.values() if needs_matrix(one)], ids=str)
def test_the_peak_of_flash_under_a_matrix_is_as_predicted(name: str, shape: Problem) -> None:
    for scope in ("core", "layer"):
        assert compare(name, shape, scope=scope) or shape.d_k != shape.d_v


@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_torch_takes_its_flash_kernel_where_the_formulas_have_it(dtype: str, passes: str) -> None:
    found = set()
    for shape in (*SHAPES.values(), replace(LONG, kv_heads=1)):
        problem = replace(shape, dtype=dtype, passes=passes)
        found.add(takes_flash(problem))
        assert takes_flash(problem) == would_run(problem, CPU, "flash")
    assert found == {True, False}


def test_formulas_are_the_textbooks() -> None:
    p = Problem(batch=2, seq_len=1024, d_model=256, heads=8)
    s, t = 2 * 8 * 1024 * 1024 * 4, 2 * 8 * 1024 * 32 * 4
    assert load("fused").peak_bytes(p, CPU, 2) == 2 * s
    training = replace(p, passes="forward+backward")
    assert load("fused").peak_bytes(training, CPU, 2) == 3 * s + 2 * t + 8
    assert load("naive").peak_bytes(p, CPU, 2) == 2 * s // 8 + t * 7 // 8


def test_the_loop_frees_the_scores_of_a_head_before_the_next() -> None:
    few, many = (Problem(batch=1, seq_len=256, d_model=8 * h, heads=h) for h in (2, 8))
    scores = 256 * 256 * 4
    for problem in (few, many):
        inputs = Inputs(*(torch.randn(1, problem.heads, 256, 8) for _ in range(3)))
        call = load("naive").prepare(problem, inputs, None)
        with torch.no_grad():
            assert 2 * scores <= peak(call) < 2.5 * scores


@pytest.mark.parametrize("name", ["naive", "fused", "sdpa"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_peak_of_the_backward_pass_alone_is_as_predicted(
    name: str, scope: Scope, shape: Problem
) -> None:
    """The graph exists before the call and stays for the next one, so nothing of it is freed."""
    few_tokens = {"heads": 2, "kv_heads": 1, "seq_len": 3, "kv_seq_len": 3}
    for changes in ({}, few_tokens if shape.causal else {"heads": 1, "kv_heads": 1}):
        check_backward_alone(name, replace(shape, **changes, scope=scope))


def check_backward_alone(name: str, shape: Problem) -> None:
    problem = replace(shape, passes="backward")
    predicted = load(name).peak_bytes(problem, CPU, torch.get_num_threads())
    if predicted is not None:
        assert abs(weighed(name, problem).peak_bytes - predicted) <= TRAINING_BYTES
