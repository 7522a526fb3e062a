"""Our own work for a problem: which cases share its inputs, and its exact result."""

from collections.abc import Iterable
from functools import partial

from ... import impls
from ...impls.problem import Problem
from ..cases.case import Case
from ..measure.input_values import InputValues
from ..rows.record import Status
from .judge_client import Check, JudgeClient, NotJudged
from .phases import PhaseRunner


def by_inputs(cases: Iterable[Case]) -> dict[tuple[Problem, str], list[Case]]:
    """Cases of equal problems whose backends get them in the same order of memory, by both."""
    found: dict[tuple[Problem, str], list[Case]] = {}
    for case in cases:
        order = impls.input_order(case.backend, case.problem)
        found.setdefault((case.problem, order), []).append(case)
    return found


def made_inputs(
    phases: PhaseRunner, problem: Problem, order: str, cases: list[Case]
) -> tuple[InputValues | None, list[Case]]:
    """The inputs of a problem, and the cases that are left: inputs that do not fit end one case
    after the other.
    """
    config = phases.config
    make = partial(InputValues, problem, config.device, config.seed, order)
    for number, case in enumerate(cases):
        if (values := phases.run(case, "prepare", make)) is not None:
            return values, cases[number:]
    return None, []


def exact_result(
    phases: PhaseRunner, judge: JudgeClient, values: InputValues, cases: list[Case], check: Check
) -> int | None:
    """Have the judge compute it; the seed of its inputs, or None if that failed, and with it every
    case.
    """
    phases.say({"event": "running", "case": None, "phase": "gate"})
    try:
        return judge.exact_result(values.problem, values.order, check)
    except NotJudged as error:
        reason = f"the exact result could not be computed: {error}"
        for case in cases:
            phases.end(case, Status.ERROR, reason, "gate")
        return None
