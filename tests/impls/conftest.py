"""The problems that every backend is checked on, and the judge: at most twice as far from the exact
result as an honest implementation.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbench.impls import Inputs, Problem, Weights, load, make_inputs, make_weights
from attnbench.impls.reference import reference, same_dtype_reference

PROBLEMS = {
    "odd": Problem(batch=2, seq_len=37, d_model=24, heads=3),
    "one_head": Problem(batch=1, seq_len=33, d_model=16, heads=1),
    "one_token": Problem(batch=2, seq_len=1, d_model=16, heads=2),
    "textbook": Problem(
        batch=1, seq_len=10, d_model=768, heads=8, d_k=64, d_v=64
    ),  # heads * d_k = 512, not d_model
    "wide_values": Problem(batch=2, seq_len=29, d_model=32, heads=4, d_k=8, d_v=24),
    "grouped": Problem(batch=2, seq_len=35, d_model=32, heads=4, kv_heads=2),
    "multi_query": Problem(batch=2, seq_len=19, d_model=64, heads=8, kv_heads=1, causal=True),
    "causal": Problem(batch=2, seq_len=70, d_model=32, heads=2, causal=True),
    "cross": Problem(batch=2, seq_len=21, kv_seq_len=50, d_model=32, heads=4),
    "top_left_wide": Problem(
        batch=1,
        seq_len=20,
        kv_seq_len=31,
        d_model=32,
        heads=2,
        causal=True,
        causal_align="top_left",
    ),
    "top_left_tall": Problem(
        batch=1,
        seq_len=31,
        kv_seq_len=20,
        d_model=32,
        heads=2,
        causal=True,
        causal_align="top_left",
    ),
    "bottom_right": Problem(
        batch=2,
        seq_len=20,
        kv_seq_len=31,
        d_model=32,
        heads=2,
        causal=True,
        causal_align="bottom_right",
    ),
    "bottom_right_grouped": Problem(
        batch=2,
        seq_len=9,
        kv_seq_len=31,
        d_model=32,
        heads=4,
        kv_heads=2,
        causal=True,
        causal_align="bottom_right",
    ),
    "decode": Problem(
        batch=2,
        seq_len=1,
        kv_seq_len=64,
        d_model=32,
        heads=4,
        kv_heads=2,
        causal=True,
        causal_align="bottom_right",
    ),
    "empty_rows": Problem(
        batch=2,
        seq_len=31,
        kv_seq_len=20,
        d_model=32,
        heads=4,
        kv_heads=2,
        causal=True,
        causal_align="bottom_right",
    ),
}
MASKED = {
    "padded": Problem(batch=4, seq_len=37, d_model=24, heads=3, mask="padding"),
    "padded_causal": Problem(
        batch=3, seq_len=31, d_model=32, heads=4, kv_heads=2, mask="padding", causal=True
    ),
    "padded_cross": Problem(batch=3, seq_len=9, kv_seq_len=50, d_model=32, heads=4, mask="padding"),
    "random": Problem(batch=2, seq_len=37, d_model=32, heads=2, mask="random"),
    "random_causal": Problem(
        batch=2, seq_len=35, d_model=32, heads=4, kv_heads=1, mask="random", causal=True
    ),
    "random_tall": Problem(
        batch=1,
        seq_len=40,
        kv_seq_len=25,
        d_model=16,
        heads=1,
        mask="random",
        causal=True,
        causal_align="bottom_right",
    ),
    "local": Problem(batch=2, seq_len=53, d_model=32, heads=2, mask="local", window=5),
    "local_causal": Problem(
        batch=1, seq_len=53, d_model=32, heads=4, kv_heads=2, mask="local", window=7, causal=True
    ),
    "local_decode": Problem(
        batch=2,
        seq_len=1,
        kv_seq_len=64,
        d_model=32,
        heads=2,
        mask="local",
        window=9,
        causal=True,
        causal_align="bottom_right",
    ),
    "strided": Problem(batch=2, seq_len=53, d_model=32, heads=2, mask="strided", window=7),
    "strided_causal": Problem(
        batch=1, seq_len=50, d_model=48, heads=2, d_v=8, mask="strided", causal=True
    ),
    "blocks": Problem(batch=1, seq_len=330, d_model=32, heads=2, mask="blocks", window=2),
    "blocks_causal": Problem(
        batch=2, seq_len=200, d_model=16, heads=2, kv_heads=1, mask="blocks", window=2, causal=True
    ),
}
# Relative errors that prove nothing. Half precision: one rounding of the result (8 significant bits
# in bf16, 11 in fp16). In fp32, where all steps round alike, 64: flash kernels recompute the
# weights from a log-sum-exp kept in fp32, and so have gradients of W_Q up to 4e-6 away (seen at
# heads=64, N=256), 3 times as far as plain operations. TF32, the likeliest wrong precision, is
# 2**-11 away.
FLOOR = {"fp32": 2.0**-18, "bf16": 2.0**-8, "fp16": 2.0**-11}
VANISHING = 1e-9


@pytest.fixture(params=PROBLEMS)
def shape(request: pytest.FixtureRequest) -> Problem:
    return PROBLEMS[request.param]


@pytest.fixture(params=MASKED)
def masked_shape(request: pytest.FixtureRequest) -> Problem:
    return MASKED[request.param]


@pytest.fixture(scope="session")
def problems() -> dict[str, Problem]:
    return PROBLEMS


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors gain nothing from threads, and spinning ones lose much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass
class Case:
    """One problem with inputs, weights and an output gradient that is zero but for the
    judged rows.
    """

    problem: Problem
    inputs: Inputs
    weights: Weights | None
    rows: Tensor
    gradient: Tensor

    def run(
        self, call: Callable[[], Tensor], context: AbstractContextManager[object] | None = None
    ) -> list[Tensor]:
        """The judged rows of the output, and the gradients of all leaves."""
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
        """The judged rows of the output alone, from tensors that ask for no gradients."""
        problem, backend = replace(self.problem, passes="forward"), load(name)
        inputs, weights = plain_copies(self.inputs, self.weights)
        with torch.no_grad(), backend.context(problem):
            return [backend.prepare(problem, inputs, weights)()[..., self.rows, :]]

    @cached_property
    def allowed(self) -> list[tuple[Tensor, float]]:
        """For the output and each gradient: what is exact, and the error of an honest
        implementation.
        """
        part = self.gradient[..., self.rows, :]
        inputs, weights = exact_copies(self.inputs, self.weights)
        exact = reference(self.problem, inputs, weights, self.rows)
        exacts = [
            exact.detach(),
            *torch.autograd.grad(exact, leaves(inputs, weights), part.double()),
        ]
        plain = same_dtype_reference(self.problem, self.inputs, self.weights, self.rows)
        honests = [
            plain.detach(),
            *torch.autograd.grad(plain, leaves(self.inputs, self.weights), part),
        ]
        floor = FLOOR[self.problem.dtype]
        return [
            (e, max(float((h.double() - e).norm()), floor * float(e.norm())))
            for e, h in zip(exacts, honests, strict=True)
        ]

    def worst_ratio(self, results: Sequence[Tensor]) -> float:
        """The largest error of output and gradients, or of the output alone, as a multiple of what
        an honest implementation has.
        """
        largest = max(float(exact.norm()) for exact, _ in self.allowed)
        worst = 0.0
        assert len(results) in (1, len(self.allowed))
        for result, (exact, allowed) in zip(results, self.allowed, strict=False):
            assert bool(torch.isfinite(result).all())
            if float(exact.norm()) <= VANISHING * largest:
                # Has no relative error: the gradient of the keys' bias, which shifts whole rows of
                # scores.
                assert float(result.double().norm()) <= 4 * FLOOR[self.problem.dtype] * largest
            else:
                worst = max(worst, float((result.double() - exact).norm()) / allowed)
        return worst


def leaves(inputs: Inputs, weights: Weights | None) -> list[Tensor]:
    return list(
        {
            id(tensor): tensor for tensor in (*inputs, *(weights.tensors() if weights else ()))
        }.values()
    )


def exact_copies(inputs: Inputs, weights: Weights | None) -> tuple[Inputs, Weights | None]:
    return copies(inputs, weights, lambda tensor: tensor.detach().double().requires_grad_())


def plain_copies(inputs: Inputs, weights: Weights | None) -> tuple[Inputs, Weights | None]:
    return copies(inputs, weights, Tensor.detach)


def copies(
    inputs: Inputs, weights: Weights | None, copy: Callable[[Tensor], Tensor]
) -> tuple[Inputs, Weights | None]:
    """What is one tensor stays one: in self-attention the inputs are."""
    made = {id(tensor): copy(tensor) for tensor in leaves(inputs, weights)}
    its_weights = weights and Weights(
        **{name: made[id(getattr(weights, name))] for name in Weights.__dataclass_fields__}
    )
    return Inputs(*(made[id(tensor)] for tensor in inputs)), its_weights


@pytest.fixture(scope="session")
def make_case() -> Callable[..., Case]:
    """Cases are kept, so that all backends are judged on one and the same."""

    @cache
    def make(
        shape: Problem, *, rows: tuple[int, ...] | None = None, device: str = "cpu", **changes: Any
    ) -> Case:
        p = replace(shape, passes="forward+backward", **changes)
        where = torch.device(device)
        inputs = make_inputs(p, where, seed=1)
        weights = make_weights(p, where, seed=2) if p.scope == "layer" else None
        if weights:
            for bias in (
                weights.b_q,
                weights.b_k,
                weights.b_v,
                weights.b_o,
            ):  # zero biases would hide a forgotten one
                bias.detach().normal_(generator=torch.Generator(where).manual_seed(3))
        chosen = torch.tensor(range(p.seq_len) if rows is None else rows, device=where)
        output_shape = (
            (p.batch, p.seq_len, p.d_model)
            if p.scope == "layer"
            else (p.batch, p.heads, p.seq_len, p.d_v)
        )
        gradient = torch.zeros(output_shape, dtype=inputs.query.dtype, device=where)
        part = torch.randn(
            gradient[..., chosen, :].shape, generator=torch.Generator().manual_seed(4)
        )
        gradient[..., chosen, :] = part.to(where, gradient.dtype)
        return Case(p, inputs, weights, chosen, gradient)

    return make
