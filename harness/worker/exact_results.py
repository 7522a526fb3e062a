"""Our own work for a problem: which cases share its inputs, and the exact results against which its
backends are checked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from ... import impls
from ...impls.problem import Problem
from ..cases.case import Case
from ..files.errors import first_line
from ..machine.free_memory import address_space_bytes
from ..measure.correctness import CorrectnessCheck
from ..measure.input_values import InputValues
from .phases import PhaseRunner


def by_inputs(cases: Iterable[Case]) -> dict[tuple[Problem, str], list[Case]]:
    """Cases of equal problems whose backends get them in the same order of memory, by both."""
    found: dict[tuple[Problem, str], list[Case]] = {}
    for case in cases:
        order = impls.input_order(case.backend, case.problem)
        found.setdefault((case.problem, order), []).append(case)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResults:
    """Of one problem: with usual inputs, and with scores so wide that exp overflows."""

    usual: CorrectnessCheck
    wide: CorrectnessCheck | None

    @property
    def held_bytes(self) -> int:
        return self.usual.held_bytes + (self.wide.held_bytes if self.wide else 0)


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


def exact_results(
    phases: PhaseRunner, values: InputValues, cases: list[Case], *, again: bool = False
) -> ExactResults | None:
    """Compute them; None if our own work fails here, and with it every case.

    `again`: for cases that were checked before; fewer rows, and no wide scores.
    """
    phases.say({"event": "running", "case": None, "phase": "gate"})
    phases.budget.lift()
    before_bytes = address_space_bytes()
    try:
        wide = None if again else _exact_wide(values)
        found = ExactResults(usual=_exact(values, few_rows=again), wide=wide)
        phases.budget.exclude_fragmentation(before_bytes, found.held_bytes)
        return found
    except (RuntimeError, MemoryError) as error:
        reason = f"the exact result could not be computed: {first_line(error)}"
        for case in cases:
            phases.end_with_error(case, error, reason, "gate")
        return None
    finally:
        phases.budget.enforce(phases.room_bytes)


def _exact(values: InputValues, *, few_rows: bool = False, wide: bool = False) -> CorrectnessCheck:
    """The exact result of the present values."""
    return CorrectnessCheck(
        values.problem, *values.tensors, values.seed, few_rows=few_rows, wide=wide
    )


def _exact_wide(values: InputValues) -> CorrectnessCheck:
    values.widen()
    try:
        return _exact(values, few_rows=True, wide=True)
    finally:
        values.restore()
