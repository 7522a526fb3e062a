"""A call whose result the judge compares with an exact one, while nothing else watches it."""

from dataclasses import dataclass
from functools import partial

from torch import Tensor

from ..cases.case import Case
from ..measure.clock import Clock, now_s
from ..measure.input_values import InputValues
from ..measure.output_check import improper
from ..measure.prepared_call import PreparedCall
from ..measure.stopwatch import Stopwatch
from .judge_client import Check, JudgeClient
from .phases import PhaseRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Makes calls and hands over what they return."""

    phases: PhaseRunner
    judge: JudgeClient
    clock: Clock

    def call(
        self,
        case: Case,
        prepared: PreparedCall,
        values: InputValues,
        check: Check,
        readings: list[float],
    ) -> tuple[str, Tensor]:
        """What is wrong with the result, or "", and the output.

        Adds how long it took to `readings`, in ms, if later calls do the same work.
        """
        waiting = Stopwatch()
        begun = now_s()
        output, gradients = prepared.result(partial(self.use_gradient, values, check, waiting))
        self.clock.finish()
        if values.problem.passes != "backward":
            readings.append((now_s() - begun - waiting.total_s) * 1e3)
        complaint = improper(prepared.problem, output, gradients, values.tensors)
        if not complaint:
            results, exactness = (output, *gradients), prepared.backend.exactness
            complaint = self.judge.complaint(case, exactness, check, results)
        values.use_dense_gradient()
        return complaint, output.detach()

    def use_gradient(self, values: InputValues, check: Check, waiting: Stopwatch) -> None:
        """Give a backward pass the gradient of a check, which names the rows that are judged: after
        the forward pass. What it takes is ours, not the case's; `values.restore` ends it.
        """
        assert values.gradient is not None
        self.phases.budget.lift()
        with waiting:
            self.judge.write_gradient(values.problem, check, values.gradient.data)
        self.phases.budget.enforce(self.phases.room_bytes)
