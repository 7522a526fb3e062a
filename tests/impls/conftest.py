"""The problems that every backend is checked on, and the check: at most twice the error of the
same-dtype reference.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.harness.measure.correctness import CorrectnessCheck, widen
from attnbench.harness.measure.prepared_call import make_tensors, output_shape, prepare_call
from attnbench.impls import Inputs, Problem, Weights, input_order, load, make_inputs, make_weights
from attnbench.impls.backend import leaves
from attnbench.impls.reference import reference, same_dtype_reference

TOP_LEFT: dict[str, Any] = {"causal": True, "causal_align": "top_left"}
BOTTOM_RIGHT: dict[str, Any] = {"causal": True, "causal_align": "bottom_right"}


def shaped(batch: int, seq_len: int, d_model: int, heads: int, **more: Any) -> Problem:
    return Problem(batch=batch, seq_len=seq_len, d_model=d_model, heads=heads, **more)


PROBLEMS = {
    "odd": shaped(2, 37, 24, 3),
    "one_head": shaped(1, 33, 16, 1),
    "one_token": shaped(2, 1, 16, 2),
    "textbook": shaped(1, 10, 768, 8, d_k=64, d_v=64),  # heads * d_k = 512, not d_model
    "wide_values": shaped(2, 29, 32, 4, d_k=8, d_v=24),
    "grouped": shaped(2, 35, 32, 4, kv_heads=2),
    "multi_query": shaped(2, 19, 64, 8, kv_heads=1, causal=True),
    "causal": shaped(2, 70, 32, 2, causal=True),
    "cross": shaped(2, 21, 32, 4, kv_seq_len=50),
    "top_left_wide": shaped(1, 20, 32, 2, kv_seq_len=31, **TOP_LEFT),
    "top_left_tall": shaped(1, 31, 32, 2, kv_seq_len=20, **TOP_LEFT),
    "bottom_right": shaped(2, 20, 32, 2, kv_seq_len=31, **BOTTOM_RIGHT),
    "bottom_right_grouped": shaped(2, 9, 32, 4, kv_seq_len=31, kv_heads=2, **BOTTOM_RIGHT),
    "decode": shaped(2, 1, 32, 4, kv_seq_len=64, kv_heads=2, **BOTTOM_RIGHT),
    "empty_rows": shaped(2, 31, 32, 4, kv_seq_len=20, kv_heads=2, **BOTTOM_RIGHT),
}
LOCAL: dict[str, Any] = {"mask": "local"}
CHUNKED: dict[str, Any] = {"mask": "chunked"}
STRIDED: dict[str, Any] = {"mask": "strided"}
MASKED = {
    "padded": shaped(4, 37, 24, 3, mask="padding"),
    "padded_causal": shaped(3, 31, 32, 4, kv_heads=2, mask="padding", causal=True),
    "padded_cross": shaped(3, 9, 32, 4, kv_seq_len=50, mask="padding"),
    "random": shaped(2, 37, 32, 2, mask="random"),
    "random_causal": shaped(2, 35, 32, 4, kv_heads=1, mask="random", causal=True),
    "random_tall": shaped(1, 40, 16, 1, kv_seq_len=25, mask="random", **BOTTOM_RIGHT),
    "local": shaped(2, 53, 32, 2, window=5, **LOCAL),
    "local_causal": shaped(1, 53, 32, 4, kv_heads=2, window=7, causal=True, **LOCAL),
    "local_decode": shaped(2, 1, 32, 2, kv_seq_len=64, window=9, **BOTTOM_RIGHT, **LOCAL),
    "strided": shaped(2, 53, 32, 2, window=7, **STRIDED),
    "strided_causal": shaped(1, 50, 48, 2, d_v=8, causal=True, **STRIDED),
    "blocks": shaped(1, 330, 32, 2, mask="blocks", window=2),
    "blocks_causal": shaped(2, 200, 16, 2, kv_heads=1, mask="blocks", window=2, causal=True),
    "tree": shaped(2, 13, 32, 2, kv_seq_len=40, mask="tree", window=3, **BOTTOM_RIGHT),
    "ragged": shaped(1, 0, 32, 2, lengths="q31_2q5_q1_q17"),
    "ragged_causal": shaped(1, 0, 32, 4, kv_heads=2, lengths="q20_3q1s19_q4s9", causal=True),
    "ragged_local": shaped(1, 0, 32, 2, lengths="q33_q2_q18", window=4, causal=True, **LOCAL),
    "ragged_strided": shaped(
        1, 0, 32, 4, kv_heads=1, d_v=16, lengths="q5_q20s31_q2", window=3, causal=True, **STRIDED
    ),
    "chunked": shaped(1, 53, 32, 4, kv_heads=2, window=16, **CHUNKED),
    "chunked_causal": shaped(2, 53, 32, 2, window=7, causal=True, **CHUNKED),
    "chunked_decode": shaped(2, 3, 32, 2, kv_seq_len=65, window=16, **BOTTOM_RIGHT, **CHUNKED),
}
CAP: dict[str, Any] = {"softcap": 1.5}  # bends scores around 1
SCORED = {
    "softcap": replace(PROBLEMS["wide_values"], **CAP),
    "softcap_grouped": replace(PROBLEMS["multi_query"], **CAP),
    "softcap_local": replace(MASKED["local_causal"], **CAP),
    "sinks": replace(PROBLEMS["odd"], sinks=True),
    "sinks_grouped": replace(PROBLEMS["bottom_right_grouped"], sinks=True),
    "sinks_local": replace(MASKED["local_decode"], sinks=True),
    "sinks_random": replace(MASKED["random_tall"], sinks=True),
    "both": replace(PROBLEMS["empty_rows"], sinks=True, **CAP),
    "both_ragged": replace(MASKED["ragged_causal"], sinks=True, **CAP),
    "both_chunked": replace(MASKED["chunked_causal"], sinks=True, **CAP),
}
"""Problems whose scores change before or in the softmax."""
# Relative errors that prove nothing. Half precision: one rounding of the result (8 significant bits
# in bf16, 11 in fp16). fp32, in which all steps round alike: 64 roundings. Flash kernels recompute
# the weights from a log-sum-exp in fp32, so their gradients of W_Q are up to 4e-6 away (seen at
# heads=64, N=256), 3 times as far as plain operations. TF32, the most likely wrong precision, is
# 2**-11 away.
FLOOR = {"fp32": 2.0**-18, "bf16": 2.0**-8, "fp16": 2.0**-11}
VANISHING = 1e-9


@pytest.fixture(params=PROBLEMS)
def shape(request: pytest.FixtureRequest) -> Problem:
    return PROBLEMS[request.param]


@pytest.fixture(scope="session")
def problems() -> dict[str, Problem]:
    return PROBLEMS


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and spinning threads slow a busy machine down."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass
class Case:
    """A problem, its tensors, and an output gradient that is zero outside the checked `rows`."""

    problem: Problem
    inputs: Inputs
    weights: Weights | None
    rows: Tensor
    gradient: Tensor

    def run(
        self, call: Callable[[], Tensor], context: AbstractContextManager[object] | None = None
    ) -> list[Tensor]:
        """The checked rows of the output, and the gradients of all leaves."""
        with context or nullcontext():
            output = call()
            gradients = torch.autograd.grad(
                output, leaves(self.inputs, self.weights), self.gradient
            )
        return [output.detach()[..., self.rows, :], *gradients]

    def backend(self, name: str) -> list[Tensor]:
        backend = load(name)
        return self.run(
            backend.prepare(self.problem, self.inputs, self.weights), backend.context(self.problem)
        )

    def backend_forward(self, name: str) -> list[Tensor]:
        """The checked rows of the output only, from tensors that require no gradients."""
        problem, backend = replace(self.problem, passes="forward"), load(name)
        inputs, weights = plain_copies(self.inputs, self.weights)
        with torch.no_grad(), backend.context(problem):
            return [backend.prepare(problem, inputs, weights)()[..., self.rows, :]]

    @cached_property
    def allowed(self) -> list[tuple[Tensor, float]]:
        """For the output and each gradient: exact result, error of the same-dtype reference."""
        part = self.gradient[..., self.rows, :]
        inputs, weights = exact_copies(self.inputs, self.weights)
        exact = reference(self.problem, inputs, weights, self.rows)
        gradients = torch.autograd.grad(exact, leaves(inputs, weights), part.double())
        same = same_dtype_reference(self.problem, self.inputs, self.weights, self.rows)
        same_gradients = torch.autograd.grad(same, leaves(self.inputs, self.weights), part)
        floor = FLOOR[self.problem.dtype]
        pairs = zip((exact.detach(), *gradients), (same.detach(), *same_gradients), strict=True)
        return [(e, max(float((s.double() - e).norm()), floor * float(e.norm()))) for e, s in pairs]

    def worst_ratio(self, results: Sequence[Tensor]) -> float:
        """The largest error of output and gradients (or of the output) over the allowed one."""
        largest = max(float(exact.norm()) for exact, _ in self.allowed)
        worst = 0.0
        assert len(results) in (1, len(self.allowed))
        for result, (exact, allowed) in zip(results, self.allowed, strict=False):
            assert bool(torch.isfinite(result).all())
            if float(exact.norm()) <= VANISHING * largest:
                # No relative error: the gradient of the keys' bias, which shifts rows of scores.
                assert float(result.double().norm()) <= 4 * FLOOR[self.problem.dtype] * largest
            else:
                worst = max(worst, float((result.double() - exact).norm()) / allowed)
        return worst


def exact_copies(inputs: Inputs, weights: Weights | None) -> tuple[Inputs, Weights | None]:
    return copies(inputs, weights, lambda tensor: tensor.detach().double().requires_grad_())


def plain_copies(inputs: Inputs, weights: Weights | None) -> tuple[Inputs, Weights | None]:
    return copies(inputs, weights, Tensor.detach)


def copies(
    inputs: Inputs, weights: Weights | None, copy: Callable[[Tensor], Tensor]
) -> tuple[Inputs, Weights | None]:
    """One tensor stays one tensor, as the inputs of self-attention."""
    made = {id(tensor): copy(tensor) for tensor in leaves(inputs, weights)}
    its_weights = weights and type(weights)(
        **{name: made[id(getattr(weights, name))] for name in weights.__dataclass_fields__}
    )
    more = {name: made[id(tensor)] for name, tensor in inputs.more.items()}
    return Inputs(*(made[id(tensor)] for tensor in inputs), more), its_weights


def complaints(
    problem: Problem, names: Iterable[str], seed: int, device: str = "cpu", *, wide: bool = False
) -> dict[str, str]:
    """What the harness's own check says of each backend that computes the problem; "": right."""
    where = torch.device(device)
    found = {name: load(name) for name in names}
    found = {name: one for name, one in found.items() if not one.why_not(problem, where)}
    if not found:
        return {}
    tensors = make_tensors(problem, where, seed, input_order(next(iter(found)), problem))
    if wide:
        widen(problem, tensors.inputs, seed)
    check = CorrectnessCheck(problem, *tensors, seed, wide=wide)

    def complaint(backend: Any) -> str:
        prepared = prepare_call(problem, backend, tensors, check.grad_output)
        with prepared.in_force():
            return check.check(*prepared.result()).complaint

    return {name: complaint(backend) for name, backend in found.items()}


@pytest.fixture(scope="session")
def make_case() -> Callable[..., Case]:
    """Cases are cached, so that all backends are checked on the same one."""

    @cache
    def make(
        shape: Problem,
        *,
        rows: tuple[int, ...] | None = None,
        device: str = "cpu",
        order: str = "heads",
        **changes: Any,
    ) -> Case:
        p = replace(shape, passes="forward+backward", **changes)
        where = torch.device(device)
        inputs = make_inputs(p, where, 1, order)
        weights = make_weights(p, where, seed=2) if p.scope != "core" else None
        chosen = torch.tensor(range(p.seq_len) if rows is None else rows, device=where)
        gradient = torch.zeros(output_shape(p), dtype=inputs.query.dtype, device=where)
        part = torch.randn(
            gradient[..., chosen, :].shape, generator=torch.Generator().manual_seed(4)
        )
        gradient[..., chosen, :] = part.to(where, gradient.dtype)
        return Case(p, inputs, weights, chosen, gradient)

    return make
