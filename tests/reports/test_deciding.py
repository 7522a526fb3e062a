"""reports/deciding.py: a plan that is said to decide does, in the time that is said."""

import math
from typing import Any

import numpy as np
import pytest

from attnbench.harness.rows.plans import PLANS
from attnbench.harness.scenario import Plan
from attnbench.harness.scenario.shards import case_s
from attnbench.harness.stats.contrasts import Spread
from attnbench.reports.data.noise_floor import spread_of_pairs
from attnbench.reports.deciding import IDLE, Seen, run_s, smallest_plan, what_decides
from attnbench.reports.judging.pair import time_ratio
from attnbench.reports.words import NOT_DECIDED
from tests.made_runs import case, problem, row

QUICK = {"command": ["attnbench", "run", "quickstart"], "scenario": {"plan": PLANS["quick"]}}
PROBLEMS = 6


def pairs(random: np.random.Generator, truth: float, sd: float, processes: int) -> list[Any]:
    """Rows of two backends on some problems, and what their pairs show."""
    rows = []
    for number in range(PROBLEMS):
        for name, level in (("a", truth), ("b", 1.0)):
            logs = math.log(level) + random.normal(0, sd / math.sqrt(2), (processes, 1))
            block_ms = np.exp(logs[:, :, None]).tolist()
            made = row(case(name, problem(128 * (1 + number))), block_ms=block_ms)
            rows.append(made | {"session": f"{number}", "latency_ms": math.exp(np.median(logs))})
    learnt = spread_of_pairs((one["case"], one["session"], one["block_ms"]) for one in rows)
    noise = {"pair_noise_ratio": learnt.ratio, "pair_noise_degrees": learnt.degrees}
    return [time_ratio(a | noise, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]


@pytest.mark.parametrize(("truth", "sd"), [(1.1, 0.06), (1.25, 0.15)])
def test_a_plan_that_is_said_to_decide_what_was_seen_does_in_seven_of_ten_runs(
    truth: float, sd: float
) -> None:
    """Of open ratios of quick runs; the plan's runs have the ratio that was seen."""
    random, decided, of = np.random.default_rng(5), 0, 0
    for _ in range(60):
        for found in pairs(random, truth, sd, int(PLANS["quick"]["processes"])):
            seen = Seen(found.value, found.process)
            plan = smallest_plan([seen], 4, several=True) if found.word == NOT_DECIDED else None
            if plan is not None:
                again = pairs(random, found.value, sd, int(PLANS[plan[0]]["processes"]))
                decided += sum(one.is_decided for one in again)
                of += len(again)
    assert of >= 60
    assert decided / of >= 0.7


@pytest.mark.parametrize("call_ms", [0.5, 10.0, 200.0, 1000.0])
@pytest.mark.parametrize("other", list(PLANS))
def test_the_time_of_another_plan_is_what_the_harness_would_foresee(
    call_ms: float, other: str
) -> None:
    quick, plan = (Plan.model_validate(name) for name in ("quick", other))
    cases = 12
    spent_s = case_s(call_ms / 1e3, quick, "cpu")
    rows = [{"latency_ms": call_ms, "device": "cpu", "spent_s": spent_s + 1.0}] * cases
    found = run_s(rows, PLANS["quick"], PLANS[other])
    foreseen = cases * case_s(call_ms / 1e3, plan, "cpu") + 3.0 * plan.processes
    assert 0.6 < found / foreseen < 1.6


def test_the_plan_is_the_smallest_that_decides_and_none_where_none_does() -> None:
    rows = [
        {"latency_ms": 5.0, "device": "cpu", "spent_s": 1.5, "processes": 4, "session": f"{one}"}
        for one in range(10)
    ]
    found = what_decides([Seen(1.15, Spread(sd=0.05, degrees=9))], rows, QUICK)
    assert found.startswith("`attnbench run quickstart --plan standard` ")
    assert "attnbench run" not in what_decides([Seen(1.01, Spread(sd=0.3, degrees=9))], rows, QUICK)
    assert what_decides([], rows, QUICK) == ""
    assert what_decides([], rows, QUICK, disturbed=True) == IDLE
