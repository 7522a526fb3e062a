"""Correctness before speed: a backend's error may be twice that of the textbook in the same dtype.

The exact result is impls/reference.py in float64. The yardstick is the textbook formula with every
intermediate rounded to the case's dtype. So the tolerance follows dtype, N and d_k by itself, and a
kernel that drops a few keys fails at any N; fixed tolerances pass it, because outputs shrink like
1/sqrt(N). Long problems are checked on sampled query rows. The output's gradient is zero in all
other rows, so that the gradients of all keys and values can still be compared whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

import torch
from torch import Tensor

from ...impls.backend import Inputs, Weights
from ...impls.problem import Problem
from ...impls.reference import reference, same_dtype_reference
from .prepared_call import leaves, output_shape

LIMIT_RATIO = 2.0
ALL_ROWS = 128  # up to this many queries every row is checked
SAMPLED_ROWS = 64
MAX_SCORES = 1 << 25  # of one check; beyond that only the first and last batch entry are checked
GRADIENT_FLOOR = {"fp32": 2.0**-18, "bf16": 2.0**-8, "fp16": 2.0**-11}
"""Relative errors of a gradient that prove nothing.

In half precision one rounding of the result. In fp32, where all steps round alike, 64 of them:
flash kernels compute the weights again from a log-sum-exp that is kept in fp32, and grouped heads
are summed in another order (correct backends were up to 4 times as far off as the textbook). TF32
would be 2**-11 off. Outputs need no floor.
"""
VANISHING = 1e-9  # of the largest gradient: a smaller one is zero but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How far a result is from the exact one; `complaint` is "" if it passes."""

    error_l2_ratio: float | None = None
    error_ratio: float | None = None
    complaint: str = ""


class CorrectnessCheck:
    """The exact result of one problem and its tolerances; checks each backend on the same inputs.

    `grad_output`: the output's gradient, zero outside the sampled rows; None without backward.
    """

    def __init__(
        self, problem: Problem, inputs: Inputs, weights: Weights | None, seed: int
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.problem = problem
        self.entries, self.rows = sample(problem, generator)
        rows = torch.tensor(self.rows, device=inputs.query.device)
        part = replace(problem, batch=len(self.entries))
        exact_tensors = self._copies(inputs, weights, torch.float64 if problem.backward else None)
        same_tensors = self._copies(inputs, weights, None)

        with torch.set_grad_enabled(problem.backward):
            exact = reference(part, *exact_tensors, rows, self.entries)
            same = same_dtype_reference(part, *same_tensors, rows, self.entries)
        self.exact: list[Tensor] = [exact.detach()]
        same_results: list[Tensor] = [same.detach()]
        self.grad_output: Tensor | None = None
        if problem.backward:
            gradient = torch.randn(same.shape, generator=generator).to(same.device, same.dtype)
            self.grad_output = self._scattered(gradient)
            self.exact += torch.autograd.grad(exact, leaves(*exact_tensors), gradient.double())
            same_results += torch.autograd.grad(same, leaves(*same_tensors), gradient)
        self.tolerances = [
            max(
                distance(result, exact, by_row=index == 0),
                distance(exact.to(result.dtype), exact, by_row=index == 0),  # rounding alone
                GRADIENT_FLOOR[problem.dtype] if index else 0.0,
            )
            for index, (result, exact) in enumerate(zip(same_results, self.exact, strict=True))
        ]

    @property
    def held_bytes(self) -> int:
        """What the exact result occupies while backends are checked."""
        return sum(exact.nbytes for exact in self.exact)

    def check(
        self, output: Tensor, gradients: Sequence[Tensor], exactness: str = "exact"
    ) -> CheckResult:
        """`output` and `gradients` (of `leaves`, in order): the backend's, for the whole problem.

        An `approximate` backend may have any error, which is recorded; an `other` one has none. All
        must have the right shape and finite numbers, and all attention zeros in fully masked rows.
        """
        if output.shape != output_shape(self.problem):
            wanted = list(output_shape(self.problem))
            return CheckResult(complaint=f"output of shape {list(output.shape)}; wanted {wanted}")
        if exactness == "other":
            return CheckResult(complaint=_not_finite([output, *gradients]))
        rows = torch.tensor(self.rows, device=output.device)
        results = [output.detach()[self.entries].index_select(-2, rows)]
        # Weights have no batch axis; inputs are [batch, ...].
        results += [g if g.dim() < 3 else g[self.entries] for g in gradients]
        if wrong := _not_finite(results):
            return CheckResult(complaint=wrong)
        largest = max((float(exact.norm()) for exact in self.exact[1:]), default=0.0)
        approximate = exactness == "approximate"
        worst_error = worst_ratio = 0.0
        pairs = zip(results, self.exact, self.tolerances, strict=True)
        for index, (result, exact, tolerance) in enumerate(pairs):
            vanishes = index and float(exact.norm()) <= VANISHING * largest
            if vanishes and (approximate or float(result.double().norm()) <= 0.01 * largest):
                continue
            error = distance(result, exact, by_row=index == 0)
            worst_error = max(worst_error, error)
            ratio = error / tolerance if tolerance else (inf if error else 0.0)
            worst_ratio = max(worst_ratio, ratio)
        if not isfinite(worst_ratio) or (approximate and self._masked_rows_not_zero(results[0])):
            complaint = "not zero where exactly zero is right"
            return CheckResult(error_l2_ratio=worst_error, complaint=complaint)
        passed = approximate or worst_ratio <= LIMIT_RATIO
        return CheckResult(
            error_l2_ratio=worst_error,
            error_ratio=worst_ratio,
            complaint="" if passed else self._complaint(worst_error, worst_ratio),
        )

    def _masked_rows_not_zero(self, output: Tensor) -> bool:
        """Whether a fully masked row is not zero; for an exact backend the distance tells."""
        fully_masked = ~self.exact[0].any(-1, keepdim=True)
        return bool((output.masked_select(fully_masked) != 0).any())

    def _complaint(self, error: float, ratio: float) -> str:
        return (
            f"{ratio:.3g} times as far from the exact result as the textbook formula in"
            f" {self.problem.dtype} (relative L2 {error:.2g}); up to {LIMIT_RATIO:g} times passes"
        )

    def _copies(
        self, inputs: Inputs, weights: Weights | None, dtype: torch.dtype | None
    ) -> tuple[Inputs, Weights | None]:
        """The checked batch entries as fresh leaves.

        Without gradients, and if all entries are checked, the tensors themselves.
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

        copied_weights = weights and Weights(
            **{
                name: copy(getattr(weights, name), batched=False)
                for name in Weights.__dataclass_fields__
            }
        )
        return Inputs(*(copy(tensor, batched=True) for tensor in inputs)), copied_weights

    def _scattered(self, rows: Tensor) -> Tensor:
        """An output gradient for the whole problem, zero outside the checked entries and rows."""
        whole = torch.zeros(output_shape(self.problem), dtype=rows.dtype, device=rows.device)
        indices = torch.tensor(self.rows, device=rows.device)
        for position, entry in enumerate(self.entries):
            whole[entry].index_copy_(-2, indices, rows[position])
        return whole


def _not_finite(results: Sequence[Tensor]) -> str:
    """Which of output and gradients has NaN or infinity; "" if none has."""
    for index, result in enumerate(results):
        if not bool(torch.isfinite(result).all()):
            return f"{'a gradient' if index else 'the output'} has NaN or infinity"
    return ""


def sample(problem: Problem, generator: torch.Generator) -> tuple[list[int], list[int]]:
    """Batch entries and query rows to check: all if that is cheap; always first and last."""
    n = problem.seq_len
    rows = list(range(n))
    if n > ALL_ROWS:
        drawn = torch.randperm(n - 2, generator=generator)[: SAMPLED_ROWS - 2] + 1
        rows = sorted([0, *drawn.tolist(), n - 1])
    entries = list(range(problem.batch))
    scores = problem.batch * problem.heads * len(rows) * problem.kv_seq_len
    if problem.batch > 2 and scores > MAX_SCORES:
        entries = [0, problem.batch - 1]
    return entries, rows


def distance(result: Tensor, exact: Tensor, *, by_row: bool) -> float:
    """Relative L2 error.

    By row: the root mean square over query rows, so that a causal problem's long first rows, which
    average few keys, do not hide an error in the short last ones; rows that must be zero count
    absolutely.
    """
    difference = result.double() - exact
    if not by_row:
        size = float(exact.norm())
        return float(difference.norm()) / (size or 1.0)
    axes = (-3, -1) if exact.dim() == 4 else (-1,)  # [batch, heads, rows, d_v] or [batch, rows, d]
    errors = difference.square().sum(axes)
    sizes = exact.square().sum(axes)
    return float((errors / sizes.where(sizes > 0, 1.0)).mean().sqrt())
