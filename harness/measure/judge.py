"""Judges what timed calls returned, in a process that never ran a backend and has no GPU.

It draws the inputs of the judged batch entries again from their seeds, on the CPU, and computes the
exact result at some places. Worker and judge know them from one seed, which the parent names after
the result exists. A place is a query of a head of a batch entry; in a layer, whose heads are
summed, of a batch entry. error_limits.py says how far off passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor

from ...impls.backend import leaves
from ...impls.layer import make_weights
from ...impls.problem import Problem
from ...impls.shared.inputs import made_entries
from .correctness import gradient_of_rows, not_finite, write_rows
from .error_limits import CheckResult, ErrorLimits
from .prepared_call import Tensors, make_tensors, output_shape

PLACES = 128
COLUMNS = 128  # of a place, if it has more: a layer's are as wide as the model
MOST_ENTRIES = 2
KEPT = 4  # exact results: all backends of a problem share a round's
FROM_MEMORY = "its result did not follow new values of its inputs: it answers from memory"


# ---- places --------------------------------------------------------------------------------------


class BadResult(ValueError):
    """A result without the numbers that are judged; the text is the complaint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Of one tensor: `rows` are flat indices of all its axes but the last, whose `columns` are
    taken; where the first axis is the batch, of the drawn entries alone.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    is_batched: bool

    def of(self, tensor: Tensor, entries: Sequence[int]) -> Tensor:
        """[rows, columns]."""
        if tensor.dim() == 1:
            return tensor[None, list(self.columns)]
        shape = (len(entries) if self.is_batched else len(tensor), *tensor.shape[1:-1])
        first, *others = torch.unravel_index(torch.tensor(self.rows, device=tensor.device), shape)
        if self.is_batched:
            first = torch.tensor(entries, device=tensor.device)[first]
        return tensor[(first, *others)][:, list(self.columns)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """`entries`, `rows`: of the batch and of the queries; with a backward pass the output's
    gradient is zero elsewhere. `columns`: of an output. `gradients`: what is taken of the whole
    gradient of each leaf, in the order of `impls.backend.leaves`.
    """

    entries: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    gradients: tuple[Part, ...]

    def of_output(self, output: Tensor) -> Tensor:
        """[entries, heads, rows, columns], in a layer without the heads."""
        rows, columns = (torch.tensor(x, device=output.device) for x in (self.rows, self.columns))
        return output[list(self.entries)].index_select(-2, rows).index_select(-1, columns)


def places(problem: Problem, seed: int) -> Places:
    """Rows are one in each of so many equal parts, drawn at random like all else."""
    random, p = Random(seed), problem
    entries = _drawn(random, p.batch, MOST_ENTRIES)
    *_, width = output_shape(p)
    of_row = len(entries) * (p.heads if p.scope == "core" else 1)
    count = min(p.seq_len, -(-PLACES // of_row))
    ends = [p.seq_len * part // count for part in range(count + 1)]
    rows = tuple(random.randrange(*part) for part in pairwise(ends))
    columns = _drawn(random, width, COLUMNS)
    gradients = _of_gradients(p, entries, rows, random) if p.backward else ()
    return Places(entries=entries, rows=rows, columns=columns, gradients=gradients)


def write_gradient(whole: Tensor, problem: Problem, seed: int) -> None:
    """Write the output's gradient of the judged call in place: random in the rows of `places`, zero
    elsewhere, so that exact gradients cost as many scores as those rows have.
    """
    drawn = places(problem, seed)
    part = gradient_of_rows(problem, drawn.entries, drawn.rows, seed, whole.device)
    write_rows(whole.data, drawn.entries, drawn.rows, part)


def taken(problem: Problem, results: Sequence[Tensor], places: Places) -> list[list[float]]:
    """What a worker sends: of `results`, the output or, with a backward pass, all gradients, the
    numbers at the places.

    Raises BadResult for a wrong shape or number of results, and for NaN or infinity anywhere.
    """
    shapes = leaf_shapes(problem) if problem.backward else (output_shape(problem),)
    found = tuple(result.shape for result in results)
    if found != shapes:
        what = "gradients" if problem.backward else "output"
        said = [", ".join(str(list(shape)) for shape in some) for some in (found, shapes)]
        raise BadResult(f"{what} of shape {said[0]}; wanted {said[1]}")
    results = [result.detach() for result in results]
    wrong = not_finite(None, results) if problem.backward else not_finite(results[0], ())
    if wrong:
        raise BadResult(wrong)
    if not problem.backward:
        chosen = [places.of_output(results[0])]
    else:
        pairs = zip(places.gradients, results, strict=True)
        chosen = [part.of(one, places.entries) for part, one in pairs]
    return [one.double().flatten().tolist() for one in chosen]


@lru_cache(maxsize=64)
def leaf_shapes(problem: Problem) -> tuple[torch.Size, ...]:
    """Of the tensors that gradients are taken of; the first ones, of query, key and value, begin
    with the batch.
    """
    tensors = make_tensors(problem, torch.device("meta"), 0)
    return tuple(leaf.shape for leaf in leaves(*tensors))


def batched_leaves(problem: Problem) -> int:
    """How many leaves begin with the batch."""
    inputs = make_tensors(problem, torch.device("meta"), 0).inputs
    return len(leaves(replace(inputs, more={}), None))


def _of_gradients(
    p: Problem, entries: Sequence[int], rows: Sequence[int], random: Random
) -> tuple[Part, ...]:
    """PLACES of each leaf, all of small ones; of the queries' also those of the output."""
    batched, parts = batched_leaves(p), []
    for index, shape in enumerate(leaf_shapes(p)):
        is_batched = index < batched
        size = len(entries) * prod(shape[1:-1]) if is_batched else prod(shape[:-1])
        chosen = _drawn(random, size, PLACES)
        if index == 0:  # [batch, ..., tokens, width]
            of_output = {first + row for first in range(0, size, p.seq_len) for row in rows}
            chosen = tuple(sorted({*chosen, *of_output}))
        columns = _drawn(random, shape[-1], COLUMNS)
        parts.append(Part(rows=chosen, columns=columns, is_batched=is_batched))
    return tuple(parts)


def _drawn(random: Random, size: int, most: int) -> tuple[int, ...]:
    """Indices below `size`: all, or so many of them at random; in order."""
    return tuple(sorted(random.sample(range(size), most)) if size > most else range(size))


# ---- judging -------------------------------------------------------------------------------------


class Seeds(NamedTuple):
    """What the tensors of a judged call came from. `values`: of its inputs' numbers; `first`: of
    those that `prepare` saw, of the weights, and of what stays when values are new (page tables).
    `places`: of the places and of the output's gradient.
    """

    values: int
    first: int
    places: int


class Judge:
    """Keeps the exact results of the last problems and seeds."""

    def __init__(self) -> None:
        self._exact = lru_cache(KEPT)(_Exact)

    def judged(
        self,
        problem: Problem,
        seeds: Seeds,
        results: Sequence[Sequence[float]],
        exactness: str = "exact",
    ) -> CheckResult:
        """`results`: as `taken` gives them. Nothing is known of exactness "other"."""
        if exactness == "other":
            return CheckResult()
        found = self._exact(problem, seeds).compare(results, exactness)
        if found.complaint and exactness == "exact" and seeds.values != seeds.first:
            first = self._exact(problem, seeds._replace(values=seeds.first))
            if not first.compare(results, exactness).complaint:
                return replace(found, complaint=FROM_MEMORY)
        return found


class _Exact:
    """The exact results of one problem and seeds, at the judged places."""

    def __init__(self, problem: Problem, seeds: Seeds) -> None:
        self.backward = problem.backward
        cpu, chosen = torch.device("cpu"), places(problem, seeds.places)
        entries, rows = chosen.entries, chosen.rows
        here = replace(chosen, entries=tuple(range(len(entries))), rows=tuple(range(len(rows))))
        weights = make_weights(problem, cpu, seeds.first) if problem.scope != "core" else None
        gradient = None
        if problem.backward:
            gradient = gradient_of_rows(problem, entries, rows, seeds.places, cpu)

        def at(index: int, result: Tensor) -> Tensor:
            if not index:
                return here.of_output(result)
            return here.gradients[index - 1].of(result, here.entries)

        self.limits = ErrorLimits(
            replace(problem, batch=len(entries)),
            Tensors(made_entries(problem, entries, seeds.values, seeds.first), weights),
            entries,
            torch.tensor(rows),
            gradient,
            at=at,
        )

    def compare(self, results: Sequence[Sequence[float]], exactness: str) -> CheckResult:
        first = 1 if self.backward else 0
        wanted = self.limits.exact[first:]
        sizes = [len(one) for one in results], [one.numel() for one in wanted]
        if sizes[0] != sizes[1]:
            return CheckResult(
                complaint=f"{sizes[0]} numbers at the judged places; wanted {sizes[1]}"
            )
        named = {
            index: torch.tensor(numbers, dtype=torch.float64).view(exact.shape)
            for index, (numbers, exact) in enumerate(zip(results, wanted, strict=True), first)
        }
        return self.limits.compare(named, exactness)
