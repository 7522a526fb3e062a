"""Correctness before speed: an exact backend may be at most twice as far from the exact result as
an honest implementation.

The exact result is impls/reference.py in float64; the honest one is the textbook formula with every
intermediate rounded to the case's dtype. So the tolerance follows dtype, N and d_k by itself, and a
kernel that drops a few keys fails at any N, where fixed tolerances pass it, because outputs shrink
like 1/sqrt(N). Long problems are judged on sampled query rows; the output's gradient is zero
elsewhere, so that the gradients of all keys and values can still be compared whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import torch
from torch import Tensor

from ...impls.backend import Inputs, Weights
from ...impls.problem import Problem
from ...impls.reference import reference, same_dtype_reference

LIMIT_RATIO = 2.0
ALL_ROWS = 128  # up to so many queries, every row is judged
SAMPLED_ROWS = 64
MOST_SCORES = (
    1 << 25
)  # scores of one judgement; beyond that only the first and last batch entry are judged
GRADIENT_FLOOR = {"fp32": 2.0**-18, "bf16": 2.0**-8, "fp16": 2.0**-11}
"""Relative errors of a gradient that prove nothing: one rounding of the result in half precision;
in fp32, where all steps round alike, 64 of them, since flash kernels compute the weights again from
a log-sum-exp that is kept in fp32, and grouped heads are summed in another order (correct backends
were up to 4 times as far away as the honest formula). TF32 would be 2**-11 away. Outputs need no
floor."""
# a gradient so much smaller than the largest one is zero but for rounding, and has no relative
# error
VANISHING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How far a result is from the exact one; `complaint` is "" when it passes."""

    error_l2_ratio: float | None
    error_ratio: float | None
    complaint: str = ""


class Gate:
    """The judge of one problem: made once from its inputs, then asked about each backend's result
    on the same inputs.
    """

    def __init__(
        self, problem: Problem, inputs: Inputs, weights: Weights | None, seed: int
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.problem = problem
        self.entries, self.rows = sample(problem, generator)
        rows = torch.tensor(self.rows, device=inputs.query.device)
        part = replace(problem, batch=len(self.entries))
        exact_inputs, exact_weights = self._copies(
            inputs, weights, torch.float64 if problem.backward else None
        )
        honest_inputs, honest_weights = self._copies(inputs, weights, None)

        with torch.set_grad_enabled(problem.backward):
            exact_rows = reference(part, exact_inputs, exact_weights, rows, self.entries)
            honest_rows = same_dtype_reference(
                part, honest_inputs, honest_weights, rows, self.entries
            )
        self.exact: list[Tensor] = [exact_rows.detach()]
        honest_results: list[Tensor] = [honest_rows.detach()]
        self.grad_output: Tensor | None = None
        if problem.backward:
            device, dtype = honest_rows.device, honest_rows.dtype
            wanted = torch.randn(honest_rows.shape, generator=generator).to(device, dtype)
            self.grad_output = self._scattered(wanted)
            self.exact += torch.autograd.grad(
                exact_rows, leaves(exact_inputs, exact_weights), wanted.double()
            )
            honest_results += torch.autograd.grad(
                honest_rows, leaves(honest_inputs, honest_weights), wanted
            )
        self.tolerances = [
            max(
                distance(result, exact, by_row=index == 0),
                distance(
                    exact.to(result.dtype), exact, by_row=index == 0
                ),  # of rounding the exact result itself
                GRADIENT_FLOOR[problem.dtype] if index else 0.0,
            )
            for index, (result, exact) in enumerate(zip(honest_results, self.exact, strict=True))
        ]

    @property
    def held_bytes(self) -> int:
        """What the exact result occupies while backends are judged."""
        return sum(exact.nbytes for exact in self.exact)

    def judge(
        self, output: Tensor, gradients: Sequence[Tensor], exactness: str = "exact"
    ) -> Verdict:
        """`output` and `gradients` (of `leaves`, in order) as the backend gave them for the whole
        problem.

        What is approximate by design may be any distance away, which is recorded; what is no
        attention has no distance. Shape and finite numbers are wanted of all, and zeros of every
        attention where a query sees no key.
        """
        if output.shape != output_shape(self.problem):
            complaint = (
                f"output of shape {list(output.shape)}; wanted {list(output_shape(self.problem))}"
            )
            return Verdict(error_l2_ratio=None, error_ratio=None, complaint=complaint)
        if exactness == "other":
            wrong = _not_finite([output, *gradients])
            return Verdict(error_l2_ratio=None, error_ratio=None, complaint=wrong)
        results = [
            output.detach()[self.entries].index_select(
                -2, torch.tensor(self.rows, device=output.device)
            )
        ]
        # Weights have no batch axis; inputs are [batch, ...].
        results += [
            gradient if gradient.dim() < 3 else gradient[self.entries] for gradient in gradients
        ]
        if wrong := _not_finite(results):
            return Verdict(error_l2_ratio=None, error_ratio=None, complaint=wrong)
        largest = max((float(exact.norm()) for exact in self.exact[1:]), default=0.0)
        approximate = exactness == "approximate"
        worst_error = worst_ratio = 0.0
        for index, (result, exact, tolerance) in enumerate(
            zip(results, self.exact, self.tolerances, strict=True)
        ):
            if (
                index
                and float(exact.norm()) <= VANISHING * largest
                and (approximate or float(result.double().norm()) <= 0.01 * largest)
            ):
                continue
            error = distance(result, exact, by_row=index == 0)
            worst_error = max(worst_error, error)
            worst_ratio = max(
                worst_ratio, error / tolerance if tolerance else (inf if error else 0.0)
            )
        if not isfinite(worst_ratio) or (approximate and self._filled_blind_rows(results[0])):
            return Verdict(
                error_l2_ratio=worst_error,
                error_ratio=None,
                complaint="not zero where exactly zero is right",
            )
        complaint = (
            ""
            if approximate or worst_ratio <= LIMIT_RATIO
            else self._complaint(worst_error, worst_ratio)
        )
        return Verdict(error_l2_ratio=worst_error, error_ratio=worst_ratio, complaint=complaint)

    def _filled_blind_rows(self, output: Tensor) -> bool:
        """Whether a query that sees no key got something else than zeros: of an exact backend the
        distance tells.
        """
        blind = ~self.exact[0].any(-1, keepdim=True)
        return bool((output.masked_select(blind) != 0).any())

    def _complaint(self, error: float, ratio: float) -> str:
        return (
            f"{ratio:.3g} times as far from the exact result as an honest {self.problem.dtype}"
            f" implementation (relative L2 {error:.2g}); up to {LIMIT_RATIO:g} times passes"
        )

    def _copies(
        self, inputs: Inputs, weights: Weights | None, dtype: torch.dtype | None
    ) -> tuple[Inputs, Weights | None]:
        """The judged batch entries as fresh leaves; without gradients the tensors themselves where
        all entries are judged.
        """
        copies: dict[int, Tensor] = {}

        def copy(tensor: Tensor, *, batched: bool) -> Tensor:
            if id(tensor) not in copies:
                part = tensor.detach()
                if batched and len(self.entries) < self.problem.batch:
                    part = part[self.entries]
                part = part if dtype is None else part.to(dtype)
                copies[id(tensor)] = part.requires_grad_() if self.problem.backward else part
            return copies[id(tensor)]

        some_weights = weights and Weights(
            **{
                name: copy(getattr(weights, name), batched=False)
                for name in Weights.__dataclass_fields__
            }
        )
        return Inputs(*(copy(tensor, batched=True) for tensor in inputs)), some_weights

    def _scattered(self, rows: Tensor) -> Tensor:
        """An output gradient for the whole problem that is zero but for the judged entries and
        rows.
        """
        whole = torch.zeros(output_shape(self.problem), dtype=rows.dtype, device=rows.device)
        for position, entry in enumerate(self.entries):
            whole[entry].index_copy_(
                -2, torch.tensor(self.rows, device=rows.device), rows[position]
            )
        return whole


def _not_finite(results: Sequence[Tensor]) -> str:
    """What of output and gradients has NaN or infinity; "" where nothing has."""
    wrong = next(
        (index for index, result in enumerate(results) if not bool(torch.isfinite(result).all())),
        None,
    )
    return "" if wrong is None else f"{'a gradient' if wrong else 'the output'} has NaN or infinity"


def leaves(inputs: Inputs, weights: Weights | None) -> list[Tensor]:
    """The tensors that gradients are taken of, each once."""
    unique = {id(tensor): tensor for tensor in (*inputs, *(weights.tensors() if weights else ()))}
    return list(unique.values())


def output_shape(problem: Problem) -> torch.Size:
    p = problem
    sizes = (
        (p.batch, p.seq_len, p.d_model)
        if p.scope == "layer"
        else (p.batch, p.heads, p.seq_len, p.d_v)
    )
    return torch.Size(sizes)


def sample(problem: Problem, generator: torch.Generator) -> tuple[list[int], list[int]]:
    """Batch entries and query rows to judge: all where that is cheap; always the first and the last
    row.
    """
    n = problem.seq_len
    rows = list(range(n))
    if n > ALL_ROWS:
        drawn = torch.randperm(n - 2, generator=generator)[: SAMPLED_ROWS - 2] + 1
        rows = sorted([0, *drawn.tolist(), n - 1])
    entries = list(range(problem.batch))
    if (
        problem.batch > 2
        and problem.batch * problem.heads * len(rows) * problem.kv_seq_len > MOST_SCORES
    ):
        entries = [0, problem.batch - 1]
    return entries, rows


def distance(result: Tensor, exact: Tensor, *, by_row: bool) -> float:
    """Relative L2 error. By row: the root mean square over query rows, so that a causal problem's
    long first rows, where few keys are averaged, do not hide an error in the short last ones; rows
    that must be zero count whole."""
    difference = result.double() - exact
    if not by_row:
        size = float(exact.norm())
        return float(difference.norm()) / size if size else float(difference.norm())
    axes = (
        (-3, -1) if exact.dim() == 4 else (-1,)
    )  # [batch, heads, rows, d_v] or [batch, rows, d_model]
    errors = difference.square().sum(axes)
    sizes = exact.square().sum(axes)
    return float((errors / sizes.where(sizes > 0, 1.0)).mean().sqrt())
