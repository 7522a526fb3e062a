"""harness/run/time_left.py: the time left follows predicted work and the speed so far, not a count
of cases.
"""

import pytest

from attnbench.harness.cases.case import Case, Wall
from attnbench.harness.cases.expected_time import END_S, Forecast
from attnbench.harness.run.forecast import forecast
from attnbench.harness.terminal.time_left import CHECKED_SHARE, TimeLeft
from attnbench.impls.problem import Problem
from tests.harness.run.test_forecast import PACE, config

SHORT, LONG, LONGEST = (
    Case(backend="fused", problem=Problem(batch=1, seq_len=n, d_model=512, heads=8))
    for n in (256, 8192, 16384)
)


WALL = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=512, heads=8))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def expected(*cases: Case) -> Forecast:
    return forecast(cases or [SHORT, LONG], config(), PACE, {}, {})


def test_half_of_the_cases_are_not_half_of_the_time() -> None:
    clock, found = Clock(), expected()
    left = TimeLeft(found, clock)
    clock.now += found.start_s + found.expected[SHORT.id].about_s
    left.finished(SHORT.id)
    assert left.seconds() > 0.8 * found.about_s - found.start_s


def measured(slower: float, *, stop: int | None = None) -> tuple[float, float]:
    """What is said to be left, and what is, once so many steps of cases that take turns, as blocks
    do, are done. `slower`: than was predicted.
    """
    clock, cases = Clock(), [LONG, LONGEST]
    found = expected(*cases)
    left = TimeLeft(found, clock)
    steps = {one.id: found.expected[one.id].steps for one in cases}
    most = max(steps.values())
    about_s = {name: slower * one.about_s for name, one in found.expected.items()}
    clock.now += found.start_s
    for step in range(1, (stop or most) + 1):
        for name, of in steps.items():
            share = CHECKED_SHARE if step == 1 else (1 - CHECKED_SHARE) / (of - 1)
            clock.now += share * about_s[name]
            left.steps(name, step)
    whole_s = found.start_s + sum(about_s.values())
    return left.seconds(), whole_s - clock.now + END_S


@pytest.mark.parametrize("slower", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("stop", [5, 8, 12])
def test_time_left_follows_the_run_s_own_pace_before_any_case_is_finished(
    slower: float, stop: int
) -> None:
    said, true = measured(slower, stop=stop)
    assert 0.6 * true <= said <= 1.6 * true


def test_it_falls_while_a_step_runs_but_never_to_nothing() -> None:
    clock, found = Clock(), expected()
    left = TimeLeft(found, clock)
    clock.now += found.about_s / 2
    half = left.seconds()
    assert half < 0.7 * found.about_s
    clock.now += 10 * found.about_s
    assert 0 < left.seconds() < half
    assert left.over_s > 9 * found.about_s


def test_walls_with_a_time_limit_end_with_it() -> None:
    clock = Clock()
    found = forecast([WALL], config(wall_budget_s=45.0), PACE, {}, {})
    left = TimeLeft(found, clock)
    left.walls_begin()
    for done in range(1, 4):
        clock.now += 10.0
        left.steps(WALL.id, done)
        assert left.seconds() == 45.0 - clock.now + END_S
    clock.now += 100.0
    assert left.seconds() == END_S
