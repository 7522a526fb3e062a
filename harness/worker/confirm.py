"""After the last block of a case, untimed: a call with random numbers that are new is judged, and
such calls may not take longer than repeated ones.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..cases.case import Case
from ..measure.clock import Timer, now_s
from ..measure.input_values import InputValues
from ..measure.output_check import Fingerprint
from ..measure.prepared_call import PreparedCall
from ..rows.record import Status
from .judged_call import Judging
from .recheck import LONG_MS, MEDIUM_MS, RATIO, answers_from_memory
from .shared_inputs import exact_result


class WarmCase(NamedTuple):
    """A case that is ready to be sampled. `values`: of its problem, shared with other backends.
    `shortest_ms`: of the calls of its last block.
    """

    case: Case
    prepared: PreparedCall
    run: Callable[[], object]
    timer: Timer
    values: InputValues
    fingerprint: Fingerprint
    call_ms: float
    shortest_ms: float = 0.0


def confirm(judging: Judging, values: InputValues, cases: list[WarmCase]) -> None:
    """Of cases that share the inputs. Their numbers are not what they were after it."""
    phases = judging.phases
    named = [warm.case for warm in cases]
    seed = exact_result(phases, judging.judge, values, named, "after")
    if seed is None:
        return
    values.draw(seed)
    suspects = []
    for warm in cases:
        look = partial(_confirm, judging, warm, seed)
        suspects += [warm] if phases.run(warm.case, "latency", look) else []
    for warm in suspects:
        phases.run(warm.case, "latency", partial(_recheck, judging, warm))


def _confirm(judging: Judging, warm: WarmCase, seed: int) -> bool:
    """Judge a call with the drawn inputs: whether its time has to be looked at again. That of a
    short call always has, and that of one whose parts are not timed together; others if it took
    longer than a call of the last block, and, if they are long, than a repeated one.
    """
    values, readings = warm.values, list[float]()
    with warm.prepared.in_force():
        values.scale(new=False)  # as much is written before either call
        complaint, _ = judging.call(warm.case, warm.prepared, values, "after", readings)
        if complaint := complaint or values.written_to(thorough=True):
            judging.phases.end(warm.case, Status.INCORRECT, complaint, "latency")
            values.restore()  # the weights too
            values.draw(seed)
            return False
        if warm.call_ms < MEDIUM_MS or not readings:
            return True
        on_host = values.device.type == "cpu"  # its blocks are timed by the same clock
        if on_host and readings[0] < RATIO * warm.shortest_ms:
            return False
        if warm.call_ms < LONG_MS:
            return True
        values.scale(new=False)
        begun = now_s()
        warm.run()
        judging.clock.finish()
        return readings[0] >= RATIO * (now_s() - begun) * 1e3


def _recheck(judging: Judging, warm: WarmCase) -> None:
    with warm.prepared.in_force():
        complaint = answers_from_memory(warm.run, judging.clock, warm.values)
    if complaint:
        judging.phases.end(warm.case, Status.INCORRECT, complaint, "latency", by_time=True)
