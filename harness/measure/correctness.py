"""Correctness before speed: the first result of a backend, at many places.

error_limits.py says how far it may be off. Every element must be finite. Long problems are compared
on one query row in every tile of 16, drawn at random. The output's gradient is zero in all other
rows, so that the gradients of all keys and values can still be compared whole, and lack a tile of
queries that a kernel drops.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf, isfinite, log, sqrt

import torch
from torch import Tensor

from ...impls.axes.lengths import starts
from ...impls.backend import TORCH_DTYPE, Inputs, Weights
from ...impls.problem import Problem
from ...impls.problem_fields import CausalAlign
from .error_limits import WIDE_SCORE, CheckResult, ErrorLimits
from .prepared_call import Tensors, draw_gradient, fresh_leaves, output_shape

ALL_ROWS = 128  # up to this many queries every row is checked
TILE_ROWS = 16  # of more queries, one in each such tile; kernels' tiles have 16 rows or more
FEW_ROWS = 64
MOST_BYTES = 1 << 30  # float64 copies of the checked batch entries; beyond, entries are drawn
MOST_HEADS = 2048  # of all checked entries together: the reference takes them one by one
FEWEST_ENTRIES = 2


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
        self.problem, self.seed = problem, seed
        # A sink can take all the weight: beside one key of score -150 it leaves exp(-150).
        self._has_rows_of_zeros = problem.mask == "random" or (problem.sinks and wide)
        generator = torch.Generator().manual_seed(seed)
        self.entries, self.rows = sample(problem, generator, few_rows=few_rows)
        device = inputs.query.device
        self.gradient: Tensor | None = None  # of the checked rows
        if problem.backward:
            self.gradient = gradient_of_rows(problem, self.entries, self.rows, seed, device)
        self.limits = ErrorLimits(
            replace(problem, batch=len(self.entries)),
            self._part(inputs, weights),
            self.entries,
            torch.tensor(self.rows, device=device),
            self.gradient,
            wide=wide,
        )

    @property
    def grad_output(self) -> Tensor | None:
        """The output's gradient, zero outside the checked rows; None without backward."""
        if self.gradient is None:
            return None
        like = self.gradient
        whole = torch.empty(output_shape(self.problem), dtype=like.dtype, device=like.device)
        self.write_gradient(whole)
        return whole

    def write_gradient(self, whole: Tensor | None) -> None:
        """Write `grad_output` into a tensor of the output's shape, if there is one."""
        if whole is not None and self.gradient is not None:
            write_rows(whole.data, self.entries, self.rows, self.gradient)

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
        wrong = not_finite(output, gradients)
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
        return self.limits.compare(results, exactness)

    def _rows_left_at_zero(self, output: Tensor) -> str:
        """Rows of zeros where attention cannot give zeros: they were not computed."""
        if self._has_rows_of_zeros:
            return ""
        zero = (output == 0).all(-1)
        zero = zero if zero.dim() == 2 else zero.all(1)  # core: over all heads
        zero = zero[:, self.problem.empty_rows :]
        count = int(zero.sum())
        return f"{count} of {zero.numel()} rows are all zeros: not computed" if count else ""

    def _part(self, inputs: Inputs, weights: Weights | None) -> Tensors:
        """The checked batch entries, as leaves; all of them are the tensors' own memory."""
        entries, p = self.entries, self.problem
        if len(entries) == p.batch:
            return fresh_leaves(Tensors(inputs, weights))
        parts: dict[int, Tensor] = {}

        def part(tensor: Tensor) -> Tensor:
            found = tensor.detach()[entries].requires_grad_(tensor.requires_grad)
            return parts.setdefault(id(tensor), found)

        def of(name: str, tensor: Tensor) -> Tensor:
            stored = ("page_table",) if p.page else ("key", "value", "key_scale", "value_scale")
            return part(tensor) if name in ("query", *stored) else tensor

        named = {name: of(name, tensor) for name, tensor in inputs.named().items()}
        q, k, v = (named.pop(name) for name in ("query", "key", "value"))
        return fresh_leaves(Tensors(Inputs(q, k, v, named), weights))


def write_rows(whole: Tensor, entries: Sequence[int], rows: Sequence[int], part: Tensor) -> None:
    """Write [entries, ..., rows, width] into a tensor of the output's shape, and zero elsewhere."""
    whole.zero_()
    indices = torch.tensor(rows, device=whole.device)
    for position, entry in enumerate(entries):
        whole[entry].index_copy_(-2, indices, part[position])


def gradient_of_rows(
    problem: Problem,
    entries: Sequence[int],
    rows: Sequence[int],
    seed: int,
    device: torch.device,
) -> Tensor:
    """Random numbers for the output's gradient in these rows, [entries, ..., rows, width]."""
    *batch_and_heads, _, width = output_shape(replace(problem, batch=len(entries)))
    shape = (*batch_and_heads, len(rows), width)
    gradient = torch.empty(shape, dtype=TORCH_DTYPE[problem.dtype], device=device)
    draw_gradient(gradient, seed)
    return gradient


def not_finite(output: Tensor | None, gradients: Sequence[Tensor]) -> str:
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


# ---- what a wrong result is right for ------------------------------------------------------------


def explained(problem: Problem, tensors: Tensors, output: Tensor, seed: int) -> str:
    """What else the output is the result of, as the end of a complaint; "" if nobody knows."""
    inputs, weights = tensors
    for words, near, query_factor in _near(replace(problem, passes="forward")):
        scaled = inputs if query_factor == 1 else replace(inputs, query=inputs.query * query_factor)
        check = CorrectnessCheck(near, scaled, weights, seed, few_rows=True)
        if not check.check(output, ()).complaint:
            return f"; it is right for {words}"
    return ""


def _near(p: Problem) -> Iterator[tuple[str, Problem, float]]:
    """In words, the problem, and the factor of its queries."""
    if p.causal and p.seq_len != p.kv_seq_len:
        other: CausalAlign = "top_left" if p.causal_align == "bottom_right" else "bottom_right"
        with suppress(ValueError):
            near = replace(p, causal_align=other)
            yield f"causal_align {other}, where {p.causal_align} was asked", near, 1
    if p.causal:
        with suppress(ValueError):
            yield "attention that is not causal", replace(p, causal=False, causal_align=""), 1
    if p.mask != "none":
        yield f"attention without the mask {p.mask}", replace(p, mask="none", window=0), 1
    for window in (p.window - 1, p.window + 1) if p.window else ():
        if window:
            yield f"window {window}, where {p.window} was asked", replace(p, window=window), 1
    if p.softcap:
        yield "attention without the softcap", replace(p, softcap=0.0), 1
    if p.scope == "core" and not p.latent:
        yield "scores without the scale", p, 1 / p.scale
