"""`attnbench advise --measure`: the runs that answer what stored rows do not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

from ...impls.problem import Problem
from ...reports.advise.answer import Advice
from ...reports.advise.asked import Inquiry, Phase
from ...reports.advise.stored import Stored, StoredRows, is_warm, lacks_time
from ..cases.case import Case, problem_of
from ..scenario import Scenario, from_mapping
from ..scenario.model_cases import axes_of
from ..scenario.selection import Selection

LONG_CALL_S = 20.0  # a call that is predicted to take longer is measured at shorter contexts
LONGEST_STANDARD_S = 120.0  # of a second, standard run where the choice is close
LENGTHS = 5  # so many show how bytes grow: those of a longer context can then be computed
SHORTEST = 64  # tokens
MATRIX, PRODUCTS = {"cpu": 512, "cuda": 4096}, 5  # rows and columns; the fastest counts
Wanted = Mapping[Problem, Sequence[str]]
"""Problems, and the backends to measure on each, all in one run so that they are paired."""


def wanted(inquiry: Inquiry, rows: StoredRows, call_s: Callable[[Problem], float]) -> Wanted:
    """What has no row yet: every implementation at the contexts that were asked, and at shorter
    ones those that do not compile, for the sake of bytes. `call_s`: predicted.

    Where a call would take too long, the longest context that does not stands for it.
    """
    every = [one.backend for one in inquiry.implementations]
    plain = [one.backend for one in inquiry.implementations if not one.compiles]
    found: dict[Problem, Sequence[str]] = {}
    for phase in inquiry.phases:
        for context in inquiry.contexts:
            for step, length in enumerate(_contexts(inquiry, phase, context, call_s)):
                backends = plain if step else every
                for problem in problems_at(inquiry, phase, length):
                    known = rows.of(asdict(problem))
                    lacking = any(_lacks(known, name, phase) for name in backends)
                    if lacking and problem not in found:
                        found[problem] = backends
    return found


def _lacks(known: Mapping[str, Stored], backend: str, phase: Phase) -> bool:
    """Whether there is no row with a time, or in training one of an earlier version, without
    `saved_bytes`, or one whose calls found their keys in caches.
    """
    if backend not in known:
        return True
    row = known[backend].row
    without_bytes = row["status"] == "ok" and row.get("saved_bytes") is None
    return lacks_time(row) or is_warm(row) or (phase == "training" and without_bytes)


def _contexts(
    inquiry: Inquiry, phase: Phase, context: int, call_s: Callable[[Problem], float]
) -> Iterator[int]:
    """The context to measure, then shorter ones."""
    while (
        context // 2 >= SHORTEST and longest_call_s(inquiry, phase, context, call_s) > LONG_CALL_S
    ):
        context //= 2
    yield from (
        context >> step for step in range(LENGTHS) if not step or context >> step >= SHORTEST
    )


def longest_call_s(
    inquiry: Inquiry, phase: Phase, context: int, call_s: Callable[[Problem], float]
) -> float:
    """Of the layers that can be measured, as predicted."""
    return max(map(call_s, problems_at(inquiry, phase, context)), default=0.0)


def too_long(inquiry: Inquiry, call_s: Callable[[Problem], float]) -> list[int]:
    """The contexts that were asked at which a call of some phase takes too long."""
    return [
        context
        for context in inquiry.contexts
        if any(
            longest_call_s(inquiry, phase, context, call_s) > LONG_CALL_S
            for phase in inquiry.phases
        )
    ]


def problems_at(inquiry: Inquiry, phase: Phase, context: int) -> list[Problem]:
    """Of the layers that can be measured."""
    asked = inquiry.shapes.asked(phase, context)
    return [problem_of(one.problem) for one in asked if one.problem is not None]


def scenario_of(
    inquiry: Inquiry, problems: Wanted, plan: str, limits: Mapping[str, float]
) -> tuple[Scenario, Selection]:
    """A scenario of explicit cases, and which of its cases are wanted."""
    backends = list(dict.fromkeys(name for names in problems.values() for name in names))
    cases = [
        {"batch": one.batch, "dtype": one.dtype, "scope": one.scope, **axes_of(one)}
        for one in problems
    ]
    scenario = from_mapping(
        {
            "name": "advise",
            "question": f"Which attention implementation is fastest for {inquiry.model}?",
            "backends": backends,
            "cases": cases,
            "device": inquiry.device,
            "plan": {"like": plan, "caches": "cold" if inquiry.device == "cpu" else "warm"},
            "limits": dict(limits),
        },
        "advise",
    )
    ids = frozenset(
        Case(backend=name, problem=problem).id
        for problem, names in problems.items()
        for name in names
    )
    return scenario, Selection(ids=ids)


def close(advice: Advice) -> Wanted:
    """Problems whose choice a longer run may decide, with the implementations in question."""
    found: dict[Problem, Sequence[str]] = {}
    for decision in advice.decisions:
        choices = decision.close
        backends = [one.implementation.backend for one in choices]
        for cell in choices[0].cells if choices else ():
            if cell.asked.problem is not None:
                found[problem_of(cell.asked.problem)] = backends
    return found


def predicted_call_s(device: str, dtype: str) -> Callable[[Problem], float]:
    """How long a call of a fused kernel may take here, by how long a product of matrices takes."""
    import torch

    from ...impls.backend import TORCH_DTYPE
    from ..devices.environment import fix_threads
    from ..measure.clock import clock_for
    from ..scenario.shards import call_s

    fix_threads()
    here, size = torch.device(device), MATRIX[device]
    try:
        kind = TORCH_DTYPE[dtype]  # type: ignore[index]
        matrix = torch.ones(size, size, dtype=kind, device=here)
        product = partial(torch.matmul, matrix, matrix)
        clock = clock_for(here)
        product_ms = min(clock.time_ms(product) for _ in range(PRODUCTS))
    except RuntimeError:  # no such product here: its cases say why
        return lambda _: 0.0
    return partial(call_s, flops_per_s=2.0 * size**3 / product_ms * 1e3)


def standard_takes_s(
    inquiry: Inquiry,
    problems: Wanted,
    limits: Mapping[str, float],
    pace: Callable[[Problem], float],
) -> float:
    """How long a standard run of these would take; `pace`: of a call."""
    from ..scenario.shards import case_s

    scenario, _ = scenario_of(inquiry, problems, "standard", limits)
    return sum(
        len(backends) * case_s(pace(problem), scenario.plan, inquiry.device)
        for problem, backends in problems.items()
    )
