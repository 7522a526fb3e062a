"""A run against several earlier ones: what they differ by is what a verdict allows for."""

import math
from random import Random

import pytest
from scipy.stats import binom

from attnbench.harness.files.errors import BadInput
from attnbench.reports.comparison.compare import Criteria, compare_history
from attnbench.reports.comparison.several_runs import beside, merged
from attnbench.reports.comparison.verdict import Gate, Rules, case_verdicts
from tests.made_runs import fake_run, grid, loaded, retold, row, timed

RUN_SD = 0.05
(CASE,) = grid(("fused",), (256,))
ONLY_NOISE = Rules(margin_ratio=0.0, history=True)


def verdict(random: Random, count: int, ratio: float = 1.0, rules: Rules = ONLY_NOISE) -> str:
    """Of a run against `count` earlier ones that differ by RUN_SD."""
    sides = [
        loaded(timed(CASE, of * 10 * math.exp(random.gauss(0, RUN_SD)), random))
        for of in [1.0] * count + [ratio]
    ]
    (base,) = merged([[one] for one in sides[:-1]])
    return next(one.verdict for one in case_verdicts([(base, beside(sides[-1], base))], rules))


@pytest.mark.parametrize("count", [4, 5, 10])
def test_equal_runs_are_told_apart_in_at_most_5_percent_and_one_of_twice_the_time_is(count):
    random = Random(count)
    found = [verdict(random, count) for _ in range(200)]
    assert found.count("slower") + found.count("faster") <= binom.ppf(0.999, 200, 0.05)
    assert {verdict(random, count, ratio=2.0) for _ in range(20)} == {"slower"}


def test_runs_decide_without_a_self_check_and_the_text_says_what_is_allowed_for(tmp_path):
    runs = [fake_run(tmp_path / str(seed), seed) for seed in range(1, 6)]
    slow = fake_run(tmp_path / "slow", 9, ratio=1.5)
    asked = Criteria(gate=Gate(margins={"latency": 0.05}))
    found = compare_history(runs, 5, slow, asked)
    assert found.gate_result is not None
    assert found.gate_result.outcome == "failed"
    assert found.base.name.startswith("5 runs, ")
    same = compare_history(runs[:4], 5, runs[4], asked)
    assert same.gate_result is not None
    assert not same.gate_result.regressions


def test_runs_that_are_unlike_the_new_one_are_passed_over(tmp_path):
    runs = [fake_run(tmp_path / str(seed), seed) for seed in range(1, 9)]
    for run in runs[1:3]:
        retold(run, torch="2.12.0")
    retold(runs[3], git="another commit")
    found = compare_history(runs[:-1], 4, runs[-1])
    assert found.base.name == f"4 runs, {runs[5].name} to {runs[0].name}"
    with pytest.raises(BadInput, match=r"last:5: 2 finished runs like 20261121T093000Z-seed8"):
        compare_history(runs[:4], 5, runs[-1])


def test_one_process_of_a_run_is_enough_since_runs_say_how_processes_differ(tmp_path):
    random = Random(4)
    rules = Rules(history=True)
    one = [
        loaded(row(CASE, block_ms=[[[10 * math.exp(random.gauss(0, 0.01))]] * 3])) for _ in "123456"
    ]
    (base,) = merged([[side] for side in one[:-1]])
    (found, *_) = case_verdicts([(base, beside(one[-1], base))], rules)
    assert "one_process" not in found.reasons
    assert found.ratio.low > 0.9
