"""harness/run/time_left.py: the time left follows predicted work and the speed so far, not a count
of cases.
"""

from attnbench.harness.cases.case import Case
from attnbench.harness.cases.expected_time import Forecast
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.run.forecast import forecast
from attnbench.harness.terminal.time_left import TimeLeft
from attnbench.impls.problem import Problem
from tests.harness.run.test_forecast import PACE, config

SHORT, LONG, LONGEST = (
    Case(backend="fused", problem=Problem(batch=1, seq_len=n, d_model=512, heads=8))
    for n in (256, 8192, 16384)
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def expected(*cases: Case) -> Forecast:
    return forecast(cases or [SHORT, LONG], config(), PACE, {}, {})


def end(case: Case, spent_s: float) -> Record:
    values = {"block_ms": [[[1.0] * 3] * 3], "exactness": "exact", "spent_s": spent_s}
    return Record(planned=case, device="cpu", attempt=1, status=Status.OK, values=values)


def test_half_of_the_cases_are_not_half_of_the_time() -> None:
    found = expected()
    left = TimeLeft(found, Clock())
    left.finished(end(SHORT, found.expected[SHORT.id].about_s))
    assert left.seconds() > 0.8 * found.about_s - found.start_s


def test_it_falls_while_a_case_runs_but_never_to_nothing() -> None:
    clock, found = Clock(), expected()
    left = TimeLeft(found, clock)
    clock.now += found.about_s / 2
    half = left.seconds()
    assert half < 0.7 * found.about_s
    clock.now += 10 * found.about_s
    assert 0 < left.seconds() < half


def left_after(done: Case, slower: float) -> float:
    found = expected(done, LONGEST)
    left = TimeLeft(found, Clock())
    left.finished(end(done, slower * found.expected[done.id].about_s))
    return left.seconds()


def test_cases_that_were_slower_than_predicted_make_the_rest_longer() -> None:
    assert left_after(LONG, 4.0) > 1.5 * left_after(LONG, 1.0)
