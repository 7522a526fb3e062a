"""Correctness before speed: a backend's error may be twice that of the textbook in the same dtype.

The exact result is impls/reference.py in float64. The yardstick is the textbook formula with every
intermediate rounded to the case's dtype. So the tolerance follows dtype, N and d_k by itself, and a
kernel that drops a few keys fails at any N; fixed tolerances pass it, because outputs shrink like
1/sqrt(N). Every element must be finite. Long problems are compared on one query row in every tile
of 16, drawn at random. The output's gradient is zero in all other rows, so that the gradients of
all keys and values can still be compared whole, and lack a tile of queries that a kernel drops.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, log, sqrt

import torch
from torch import Tensor

from ...impls.backend import Inputs, Weights, leaves
from ...impls.lengths import starts
from ...impls.problem import Problem
from ...impls.reference import absorbed_reference, reference, same_dtype_reference
from .prepared_call import output_shape

LIMIT_RATIO = 2.0
ROW_LIMIT_RATIO = 8.0
"""The same for the worst row: a maximum scatters more than a mean over all rows."""
ALL_ROWS = 128  # up to this many queries every row is checked
TILE_ROWS = 16  # of more queries, one in each such tile; kernels' tiles have 16 rows or more
FEW_ROWS = 64
MOST_BYTES = 1 << 30  # float64 copies of the checked batch entries; beyond, entries are drawn
MOST_HEADS = 2048  # of all checked entries together: the reference takes them one by one
FEWEST_ENTRIES = 2
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


class CorrectnessCheck:
    """The exact result of one problem and its tolerances; checks backends on the same inputs.

    `seed`: of the rows and entries that are checked, and of the output's gradient. `few_rows`:
    FEW_ROWS instead of one in every tile, for a check after a first one. `wide`: the inputs have
    wide scores.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: Inputs,
        weights: Weights | None,
        seed: int,
        *,
        few_rows: bool = False,
        wide: bool = False,
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.problem, self.seed = problem, seed
        self._compares_gradients = not wide or problem.dtype == "fp32"
        # A sink can take all the weight: beside one key of score -150 it leaves exp(-150).
        self._has_rows_of_zeros = problem.mask == "random" or (problem.sinks and wide)
        self._smallest_row = SMALLEST_ROW[problem.dtype] if problem.sinks else 0.0
        self.entries, self.rows = sample(problem, generator, few_rows=few_rows)
        rows = torch.tensor(self.rows, device=inputs.query.device)
        part = replace(problem, batch=len(self.entries))
        exact_tensors = self._copies(inputs, weights, torch.float64 if problem.backward else None)
        same_tensors = self._copies(inputs, weights, None)

        with torch.set_grad_enabled(problem.backward):
            exact = reference(part, *exact_tensors, rows, self.entries)
            textbooks = (same_dtype_reference, absorbed_reference)[: 2 if problem.latent else 1]
            same = [one(part, *same_tensors, rows, self.entries) for one in textbooks]
        self.exact = [exact.detach()]
        same_results: list[list[Tensor]] = [[one.detach()] for one in same]
        self.gradient: Tensor | None = None  # of the checked rows
        if problem.backward:
            gradient = torch.randn(exact.shape, generator=generator).to(same[0])
            self.gradient = gradient
            self.exact += torch.autograd.grad(exact, leaves(*exact_tensors), gradient.double())
            for results, one in zip(same_results, same, strict=True):
                results.extend(torch.autograd.grad(one, leaves(*same_tensors), gradient))
        floor_ratio = max(GRADIENT_FLOOR[problem.dtype], WIDE_GRADIENT_FLOOR if wide else 0.0)
        floors = [floor_ratio] * len(self.exact)
        if problem.backward and (problem.sinks or problem.softcap):
            places = {id(one): index for index, one in enumerate(leaves(*exact_tensors), 1)}
            if problem.sinks:
                sinks = places[id(exact_tensors[0].more["sinks"])]
                floors[sinks] *= max(1.0, FEW_SINKS / problem.heads)
            if own := exact_tensors[1]:  # of large terms, zero but for the cap or the sinks
                of_keys = places[id(own.b_k)]
                largest = max(float(one.norm()) for one in self.exact[1:])
                floors[of_keys] *= largest / (float(self.exact[of_keys].norm()) or largest or 1.0)
        output_floor_ratio = (WIDE_OUTPUT_FLOOR if wide else OUTPUT_FLOOR)[problem.dtype]
        output_floor_ratio *= bool(self.exact[0].any())
        self.tolerances = [
            max(
                *(self._distance(index, result) for result in results),
                self._distance(index, exact.to(results[0].dtype)),  # rounding alone
                floors[index] if index else output_floor_ratio,
            )
            for index, (exact, *results) in enumerate(zip(self.exact, *same_results, strict=True))
        ]
        self.sum_error = SUM_ERROR * sqrt(problem.kv_seq_len)
        exact, outputs = self.exact[0], [found[0] for found in same_results]
        outputs.append(exact.to(outputs[0].dtype))
        self.row_tolerance = max(
            output_floor_ratio,
            *(float(row_errors(one, exact, self._smallest_row).max()) for one in outputs),
        )

    @property
    def grad_output(self) -> Tensor | None:
        """The output's gradient, zero outside the checked rows; None without backward."""
        if self.gradient is None:
            return None
        like = self.gradient
        whole = torch.empty(output_shape(self.problem), dtype=like.dtype, device=like.device)
        write_rows(whole, self.entries, self.rows, like)
        return whole

    def check(
        self, output: Tensor | None, gradients: Sequence[Tensor], exactness: str = "exact"
    ) -> CheckResult:
        """`output` and `gradients` (of `leaves`, in order): the backend's, for the whole problem.

        An output of None is left out. An `approximate` backend may have any error, which is
        recorded; an `other` one has none. All must have the right shape, finite numbers and no row
        that was left at zero, and all attention zeros in fully masked rows.
        """
        if output is not None and output.shape != output_shape(self.problem):
            wanted = list(output_shape(self.problem))
            return CheckResult(complaint=f"output of shape {list(output.shape)}; wanted {wanted}")
        wrong = _not_finite(output, gradients)
        if wrong or (output is not None and (wrong := self._rows_left_at_zero(output.detach()))):
            return CheckResult(complaint=wrong)
        if exactness == "other":
            return CheckResult()
        # Weights have no batch axis; inputs are [batch, ...], a prefix [1, ...].
        results = {
            index: gradient if gradient.dim() < 3 or len(gradient) == 1 else gradient[self.entries]
            for index, gradient in enumerate(gradients, 1)
        }
        if output is not None:
            rows = torch.tensor(self.rows, device=output.device)
            results[0] = output.detach()[self.entries].index_select(-2, rows)
        largest = max((float(exact.norm()) for exact in self.exact[1:]), default=0.0)
        approximate = exactness == "approximate"
        worst_error = worst_ratio = 0.0
        worst_limit, too_far = LIMIT_RATIO, False
        for index, result in sorted(results.items()):
            if index and not self._compares_gradients:
                continue
            exact, tolerance = self.exact[index], self.tolerances[index]
            vanishes = index and float(exact.norm()) <= VANISHING * largest
            if vanishes and (approximate or float(result.double().norm()) <= 0.01 * largest):
                continue
            error = self._distance(index, result)
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

    def _distance(self, index: int, result: Tensor) -> float:
        """Of an output (index 0) or gradient from the exact one."""
        if index:
            return distance(result, self.exact[index])
        return float(row_errors(result, self.exact[0], self._smallest_row).square().mean().sqrt())

    def _wrong_rows(self, output: Tensor) -> str:
        """Which single rows are wrong, if the mean over all rows hides them."""
        errors = row_errors(output, self.exact[0], self._smallest_row)
        limit = ROW_LIMIT_RATIO * self.row_tolerance
        wrong = (errors > limit).nonzero()
        if not len(wrong):
            return ""
        entry, row = wrong[0].tolist()
        return (
            f"{len(wrong)} of {errors.numel()} checked rows are wrong, the first is row"
            f" {self.rows[row]} of batch entry {self.entries[entry]} (relative L2"
            f" {float(errors[entry, row]):.2g}; up to {limit:.2g} passes)"
        )

    def _rows_left_at_zero(self, output: Tensor) -> str:
        """Rows of zeros where attention cannot give zeros: they were not computed."""
        if self._has_rows_of_zeros:
            return ""
        zero = (output == 0).all(-1)
        zero = zero if zero.dim() == 2 else zero.all(1)  # core: over all heads
        zero = zero[:, self.problem.empty_rows :]
        count = int(zero.sum())
        return f"{count} of {zero.numel()} rows are all zeros: not computed" if count else ""

    def _masked_rows_not_zero(self, output: Tensor) -> bool:
        """Whether a fully masked row is not zero."""
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

        copied_weights = weights and type(weights)(
            **{
                name: copy(getattr(weights, name), batched=False)
                for name in weights.__dataclass_fields__
            }
        )
        more = {name: copy(tensor, batched=False) for name, tensor in inputs.more.items()}
        q = copy(inputs.query, batched=True)
        k, v = (copy(one, batched=not self.problem.page) for one in (inputs.key, inputs.value))
        return Inputs(q, k, v, more), copied_weights


def write_rows(whole: Tensor, entries: Sequence[int], rows: Sequence[int], part: Tensor) -> None:
    """Write [entries, ..., rows, width] into a tensor of the output's shape, and zero elsewhere."""
    whole.zero_()
    indices = torch.tensor(rows, device=whole.device)
    for position, entry in enumerate(entries):
        whole[entry].index_copy_(-2, indices, part[position])


def _not_finite(output: Tensor | None, gradients: Sequence[Tensor]) -> str:
    """Which of output and gradients has NaN or infinity anywhere; "" if none has."""
    for index, result in enumerate((output, *gradients)):
        if result is None or not result.numel():
            continue
        if not isfinite(float(torch.linalg.vector_norm(result.detach(), inf))):  # keeps NaN
            return f"{'a gradient' if index else 'the output'} has NaN or infinity"
    return ""


def sample(
    problem: Problem, generator: torch.Generator, *, few_rows: bool = False
) -> tuple[list[int], list[int]]:
    """Batch entries and query rows to check: all if that is cheap, else drawn at random.

    Of more than ALL_ROWS queries the first, the last and one in every tile of TILE_ROWS, or in
    every one of FEW_ROWS equal parts; of a ragged batch the first and last of each sequence, unless
    there are more sequences than tiles.
    """
    p, n = problem, problem.seq_len
    rows = list(range(n))
    if n > ALL_ROWS:
        size = max(TILE_ROWS, -(-n // FEW_ROWS)) if few_rows else TILE_ROWS
        firsts = torch.arange(0, n, size)
        sizes = (n - firsts).clamp(max=size)
        drawn = firsts + (torch.rand(len(firsts), generator=generator) * sizes).long()
        ends = starts(p.lengths)[0] if p.lengths else (0, n)
        ends = ends if len(ends) <= len(drawn) else (0, n)
        rows = sorted({*ends[:-1], *drawn.tolist(), *(end - 1 for end in ends[1:])})
    widths = p.heads * n * p.d_k + p.kv_heads * p.kv_seq_len * (p.d_k + p.d_v)
    if p.scope != "core":
        widths = max(widths, (n + p.kv_seq_len) * p.d_model)
    copies = 2 if p.backward else 1  # gradients too
    most = min(MOST_BYTES // (8 * copies * widths), MOST_HEADS // p.heads)
    most = max(FEWEST_ENTRIES, most)
    if p.batch <= most:
        return list(range(p.batch)), rows
    entries = torch.randperm(p.batch, generator=generator)[:most]
    return sorted(entries.tolist()), rows


def widen(problem: Problem, inputs: Inputs, seed: int) -> None:
    """Scale the queries in place so that the largest scores are about WIDE_SCORE, either sign.

    Factors differ by row, in random order, from 1 up. In self-attention of scope "layer" queries
    and keys are one tensor, whose rows are scaled by the square root.
    """
    generator = torch.Generator().manual_seed(seed)
    # The largest of N standard normal scores is about sqrt(2 ln N).
    most = WIDE_SCORE / sqrt(2 * log(problem.kv_seq_len + 2))
    order = torch.randperm(problem.seq_len, generator=generator)
    powers = (order + 1) / problem.seq_len
    if inputs.query is inputs.key:
        powers = powers / 2
    factors = (most**powers).to(inputs.query.device, inputs.query.dtype)
    inputs.query.data.mul_(factors[:, None])


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
