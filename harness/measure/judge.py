"""Judges what timed calls returned, in a process that never ran a backend and has no GPU.

It draws the inputs of the judged batch entries again from their seeds, on the CPU, and computes the
exact result at the judged places (judged_places.py). error_limits.py says how far off passes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ...impls.backend import made_entries
from ...impls.layer import make_weights
from ...impls.problem import Problem
from .correctness import gradient_of_rows
from .error_limits import CheckResult, ErrorLimits
from .judged_places import places
from .prepared_call import Tensors

KEPT = 4  # exact results: all backends of a problem share a round's
FROM_MEMORY = "its result did not follow new values of its inputs: it answers from memory"


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
        self._known: dict[tuple[Problem, Seeds], _Exact] = {}

    def judged(
        self,
        problem: Problem,
        seeds: Seeds,
        results: Sequence[Sequence[float]],
        exactness: str = "exact",
    ) -> CheckResult:
        """`results`: as judged_places.taken gives them. Nothing is known of exactness "other"."""
        if exactness == "other":
            return CheckResult()
        found = self._exact(problem, seeds).compare(results, exactness)
        if found.complaint and exactness == "exact" and seeds.values != seeds.first:
            first = self._exact(problem, seeds._replace(values=seeds.first))
            if not first.compare(results, exactness).complaint:
                return replace(found, complaint=FROM_MEMORY)
        return found

    def _exact(self, problem: Problem, seeds: Seeds) -> "_Exact":
        key = (problem, seeds)
        known = self._known.pop(key, None) or _Exact(problem, seeds)
        self._known[key] = known  # the last one used
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return known


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
