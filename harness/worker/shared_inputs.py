"""Which cases of a group share their input tensors."""

from collections.abc import Iterable

from ... import impls
from ...impls.problem import Problem
from ..cases.case import Case


def by_inputs(cases: Iterable[Case]) -> dict[tuple[Problem, str], list[Case]]:
    """Cases of equal problems whose backends get them in the same order of memory, by both."""
    found: dict[tuple[Problem, str], list[Case]] = {}
    for case in cases:
        order = impls.input_order(case.backend, case.problem)
        found.setdefault((case.problem, order), []).append(case)
    return found
