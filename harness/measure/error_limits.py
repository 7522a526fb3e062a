"""How far a result may be from the exact one: twice as far as the textbook in the same dtype.

The exact result is impls/reference.py in float64. The yardstick is the textbook formula with every
intermediate rounded to the case's dtype. So the tolerance follows dtype, N and d_k by itself, and a
kernel that drops a few keys fails at any N; fixed tolerances pass it, because outputs shrink like
1/sqrt(N).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE, leaves
from ...impls.problem import Problem
from ...impls.reference import absorbed_reference, reference, same_dtype_reference
from .prepared_call import Tensors, fresh_leaves

LIMIT_RATIO = 2.0
ROW_LIMIT_RATIO = 8.0
"""The same for the worst row: a maximum scatters more than a mean over all rows."""
WIDE_SCORE = 150.0
"""The largest scores of `widen`. exp overflows in fp32 and bf16 above 88.7, in fp16 above 11.1."""
GRADIENT_FLOOR = {"fp32": 2.0**-18, "bf16": 2.0**-7, "fp16": 2.0**-10}
"""Relative errors of a gradient that prove nothing.

In half precision two roundings of the result: on 7 tokens a correct backend had 2.7 in fp16 where
the textbook formula had 1.3, so that a tolerance from the latter alone depends on chance. In fp32,
where all steps round alike, 64: flash kernels compute the weights again from a log-sum-exp that is
kept in fp32, and grouped heads are summed in another order (correct backends were up to 4 times as
far off as the textbook). TF32 would be 2**-11 off.
"""
FEW_SINKS = 8
"""A sink's gradient is a sum over all queries, which may nearly cancel, though seldom in all heads.
With fewer heads than this its floor is as many times higher: of one head 2 in 60 correct results
were up to 2.6 times as far off as the textbook.
"""
FEW_NUMBERS = 128
"""The same of biases, gains and shifts: of 8 numbers in bf16 a correct backend was 3.3 times as far
off as the textbook, of 64 numbers 1.8 times (the worst of some 3 000 random blocks).
"""
SUM_ERROR = 2.0**-24 / 3
"""Of a sum of N equal positive numbers in fp32, taken one after the other, times the root of N: the
root mean square of N roundings at the size of the partial sums (Higham, The Accuracy of Floating
Point Summation, 1993). torch's flex_attention sums the keys so on a CPU, and had 0.9 times as much
for N of 4 096 and 8 192; the textbook formula sums in blocks.
"""
WIDE_GRADIENT_FLOOR = 4 * WIDE_SCORE * 2.0**-23
"""Flash kernels compute weights as exp(score - log-sum-exp): both round in fp32 at their size.

In half precision gradients of wide scores are not compared, and only have to be finite. Where one
key has nearly all the weight, a score's gradient is the small difference of two large numbers, and
flash kernels take one of them from the rounded output: on two tokens the gradients of queries and
keys were off by 65 % in fp16.
"""
OUTPUT_FLOOR = {"fp32": 2.0**-23, "bf16": 2.0**-8, "fp16": 2.0**-11}
"""Relative errors of an output that prove nothing: one rounding, in fp32 two. Of a single key the
textbook formula makes no error at all.
"""
WIDE_OUTPUT_FLOOR = {
    name: WIDE_SCORE * roundoff
    for name, roundoff in (("fp32", 2.0**-24), ("bf16", 2.0**-9), ("fp16", 2.0**-12))
}
"""Relative errors of an output that prove nothing with wide scores: one rounding of a score changes
its weight by that much. The textbook's own error tells it as long as there are many rows; of one
row, as in decoding, it can be small by chance.
"""
SMALLEST_ROW = {"fp32": 1e-35, "bf16": 1e-35, "fp16": 2.0**-14}
"""Norms of rows, below which the weights that a sink left have no digits in the dtype."""
VANISHING = 1e-9  # of the largest gradient: a smaller one is zero but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How far a result is from the exact one; `complaint` is "" if it passes.

    `output_cosine`: of an approximate backend's output and the exact one. `error_limit_ratio`: up
    to which `error_ratio` passes.
    """

    error_l2_ratio: float | None = None
    output_cosine: float | None = None
    error_ratio: float | None = None
    error_limit_ratio: float | None = None
    complaint: str = ""


class ErrorLimits:
    """The exact output and gradients at some places, and how far a result may be from each.

    `tensors`: of the batch entries `entries`, as `problem` is; their gradients are taken. `rows`:
    the queries whose output is computed, int64. `gradient`: of that output, [entries, ..., rows,
    width], with a backward pass. `at`: what is compared of an output (index 0) or of a leaf's
    gradient (from 1 on), if not all. `wide`: the inputs have wide scores.
    """

    def __init__(
        self,
        problem: Problem,
        tensors: Tensors,
        entries: Sequence[int],
        rows: Tensor,
        gradient: Tensor | None,
        *,
        at: Callable[[int, Tensor], Tensor] = lambda _, result: result,
        wide: bool = False,
    ) -> None:
        self.problem, self.entries, self.rows = problem, entries, rows.tolist()
        self._compares_gradients = not wide or problem.dtype == "fp32"
        self._smallest_row = SMALLEST_ROW[problem.dtype] if problem.sinks else 0.0
        self.sum_error = SUM_ERROR * sqrt(problem.kv_seq_len)

        def results(formula: Callable[..., Tensor], tensors: Tensors) -> list[Tensor]:
            with torch.set_grad_enabled(problem.backward):
                output = formula(problem, *tensors, rows, entries)
            if gradient is None:
                return [output]
            targets = leaves(*tensors)
            found = torch.autograd.grad(output, targets, gradient.to(output.dtype))
            return [output.detach(), *found]

        exact_tensors = fresh_leaves(tensors, torch.float64) if problem.backward else tensors
        exact = results(reference, exact_tensors)
        sizes = [float(one.norm()) for one in exact[1:]]
        self._largest = max(sizes, default=0.0)
        self._vanishes = [False, *(size <= VANISHING * self._largest for size in sizes)]
        floors = self._floors(tensors, exact, wide=wide)

        def compared(results: list[Tensor]) -> list[Tensor]:
            return [at(index, result) for index, result in enumerate(results)]

        self.exact = compared(exact)
        textbooks = (same_dtype_reference, absorbed_reference)[: 2 if problem.latent else 1]
        allowed = [compared(results(formula, tensors)) for formula in textbooks]
        allowed.append([one.to(TORCH_DTYPE[problem.dtype]) for one in self.exact])  # rounding alone
        self._tolerances = [
            max(floor, *(self._distance(index, one[index]) for one in allowed))
            for index, floor in enumerate(floors)
        ]
        self._row_tolerance = max(
            floors[0], *(float(self._row_errors(one[0]).max()) for one in allowed)
        )

    def compare(self, results: Mapping[int, Tensor], exactness: str) -> CheckResult:
        """Of an exact or approximate backend, by index: its output is 0."""
        approximate = exactness == "approximate"
        worst_error = worst_ratio = 0.0
        worst_limit, too_far = LIMIT_RATIO, False
        for index, result in sorted(results.items()):
            if index and not self._compares_gradients:
                continue
            if self._vanishes[index] and (
                approximate or float(result.double().norm()) <= 0.01 * self._largest
            ):
                continue
            error, tolerance = self._distance(index, result), self._tolerances[index]
            worst_error = max(worst_error, error)
            ratio = error / tolerance if tolerance else (inf if error else 0.0)
            limit = LIMIT_RATIO
            if not index and tolerance:
                limit *= max(1.0, self.sum_error / tolerance)
            if ratio >= worst_ratio:
                worst_ratio, worst_limit = ratio, limit
            too_far = too_far or not ratio <= limit
        if not isfinite(worst_ratio) or (0 in results and self._masked_rows_not_zero(results[0])):
            complaint = "not zero where exactly zero is right"
            return CheckResult(error_l2_ratio=worst_error, complaint=complaint)
        complaint = self._wrong_rows(results[0]) if 0 in results and not approximate else ""
        if too_far and not approximate:
            complaint = self._complaint(worst_error, worst_ratio)
        compared = approximate and 0 in results
        return CheckResult(
            error_l2_ratio=worst_error,
            output_cosine=cosine(results[0], self.exact[0]) if compared else None,
            error_ratio=worst_ratio,
            error_limit_ratio=None if approximate else worst_limit,
            complaint=complaint,
        )

    def _floors(self, tensors: Tensors, exact: list[Tensor], *, wide: bool) -> list[float]:
        """Of the output and of each gradient: relative errors that prove nothing."""
        p, (inputs, weights) = self.problem, tensors
        of_output = (WIDE_OUTPUT_FLOOR if wide else OUTPUT_FLOOR)[p.dtype] * bool(exact[0].any())
        of_gradient = max(GRADIENT_FLOOR[p.dtype], WIDE_GRADIENT_FLOOR if wide else 0.0)
        floors = [of_output, *(of_gradient for _ in exact[1:])]
        if not p.backward:
            return floors
        indices = {id(one): index for index, one in enumerate(leaves(*tensors), 1)}
        if p.sinks:
            floors[indices[id(inputs.more["sinks"])]] *= max(1.0, FEW_SINKS / p.heads)
        for one in weights.tensors() if weights else ():
            if one.dim() == 1:
                floors[indices[id(one)]] *= max(1.0, FEW_NUMBERS / one.numel())
        if weights and (p.sinks or p.softcap):  # of large terms, zero but for the cap or the sinks
            of_keys = indices[id(weights.b_k)]
            size = float(exact[of_keys].norm())
            floors[of_keys] = of_gradient * self._largest / (size or self._largest or 1.0)
        return floors

    def _distance(self, index: int, result: Tensor) -> float:
        """Of an output (index 0) or gradient from the exact one."""
        if index:
            return distance(result, self.exact[index])
        return float(self._row_errors(result).square().mean().sqrt())

    def _row_errors(self, output: Tensor) -> Tensor:
        return row_errors(output, self.exact[0], self._smallest_row)

    def _wrong_rows(self, output: Tensor) -> str:
        """Which single rows are wrong, if the mean over all rows hides them."""
        errors = self._row_errors(output)
        limit = ROW_LIMIT_RATIO * self._row_tolerance
        wrong = (errors > limit).nonzero()
        if not len(wrong):
            return ""
        entry, row = wrong[0].tolist()
        return (
            f"{len(wrong)} of {errors.numel()} checked rows are wrong, the first is row"
            f" {self.rows[row]} of batch entry {self.entries[entry]} (relative L2"
            f" {float(errors[entry, row]):.2g}; up to {limit:.2g} passes)"
        )

    def _masked_rows_not_zero(self, output: Tensor) -> bool:
        """Whether a fully masked row is not zero."""
        fully_masked = ~self.exact[0].any(-1, keepdim=True)
        return bool((output.masked_select(fully_masked) != 0).any())

    def _complaint(self, error: float, ratio: float) -> str:
        return (
            f"{ratio:.3g} times as far from the exact result as the textbook formula in"
            f" {self.problem.dtype} (relative L2 {error:.2g}); up to {LIMIT_RATIO:g} times passes"
        )


def distance(result: Tensor, exact: Tensor) -> float:
    """Relative L2 error; absolute of an exact result that is zero."""
    size = float(exact.norm())
    return float((result.double() - exact).norm()) / (size or 1.0)


def cosine(result: Tensor, exact: Tensor) -> float | None:
    """Of all elements as one vector; None if one of them is zero.

    Its square is the share of the exact result's sum of squares that the best multiple of `result`
    explains.
    """
    sizes = float(result.double().norm()) * float(exact.norm())
    return float((result.double() * exact).sum()) / sizes if sizes else None


def row_errors(result: Tensor, exact: Tensor, smallest: float = 0.0) -> Tensor:
    """Relative L2 error of each query row over all heads, [batch, rows]; absolute of rows up to
    `smallest`, so of those that must be zero.

    By row, so that a causal problem's long first rows, which average few keys, do not hide an error
    in the short last ones.
    """
    axes = (-3, -1) if exact.dim() == 4 else (-1,)  # [batch, heads, rows, d_v] or [batch, rows, d]
    errors = (result.double() - exact).square().sum(axes)
    sizes = exact.square().sum(axes)
    return (errors / sizes.where(sizes > smallest**2, 1.0)).sqrt()
