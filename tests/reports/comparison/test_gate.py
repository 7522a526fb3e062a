"""reports/comparison/gate.py: a change for the worse beyond its margin fails.

A gate without data is refused.
"""

import pytest

from attnbench.reports.comparison.case_samples import case_samples, not_started
from attnbench.reports.comparison.gate import Gate, apply
from attnbench.reports.comparison.verdict import Rules, case_verdicts
from tests.made_runs import row
from tests.reports.comparison.test_verdict import PLANNED, measured, scaled


def result(pairs, fail_on_undecided=False, **margins):
    gate = Gate(margins=margins or {"latency": 0.05}, fail_on_undecided=fail_on_undecided)
    return apply(gate, case_verdicts(pairs, Rules(given=gate.margins)))


def test_a_slower_case_is_a_regression_and_a_faster_one_is_not():
    one = measured(1)
    assert not result([(one, scaled(one, 1.2))]).passed
    assert result([(one, scaled(one, 1 / 1.2))]).passed
    assert result([(one, one)]).passed


def test_the_margin_is_used_as_given():
    one = measured(1)
    assert result([(one, scaled(one, 1.2))], latency=0.25).passed
    assert not result([(one, scaled(one, 1.02))], latency=0.01).passed


def test_metrics_without_a_margin_do_not_fail():
    pairs = [(measured(1, peak_bytes=100), scaled(measured(1, peak_bytes=101), 1.2))]
    assert [one.metric for one in result(pairs, peak_bytes=0.0).regressions] == ["peak_bytes"]
    assert [one.metric for one in result(pairs, peak_bytes=0.02, latency=0.05).regressions] == [
        "latency"
    ]


def test_a_broken_case_is_a_regression_whatever_is_gated():
    pairs = [(measured(1), case_samples(row(PLANNED[0], "oom")))]
    for margins in ({"latency": 0.05}, {"peak_bytes": 0.0}):
        assert [one.verdict for one in result(pairs, **margins).regressions] == ["broken"]


def test_undecided_beside_a_decided_case_passes_unless_requested_otherwise():
    one = measured(1)
    undecided = (measured(1, processes=1), measured(2, processes=1))
    pairs = [(one, one), undecided]
    assert result(pairs).outcome == "passed"
    assert len(result(pairs).undecided) == 1
    assert result(pairs, fail_on_undecided=True).outcome == "failed"


def test_a_gate_that_decided_nothing_has_not_passed():
    pairs = [(measured(1, processes=1), measured(2, processes=1))]
    found = result(pairs)
    assert (found.outcome, found.passed) == ("nothing decided", False)
    (idle,) = found.idle
    assert (idle.metric, idle.cases) == ("latency", 1)
    assert idle.reasons["one_process"] == 1
    assert result(pairs, fail_on_undecided=True).outcome == "failed"


def test_a_metric_that_decided_nothing_is_not_hidden_by_another_that_did():
    pairs = [(measured(1, processes=1), measured(2, processes=1))]
    found = result(pairs, latency=0.05, peak_bytes=0.0)
    assert [one.metric for one in found.idle] == ["latency"]
    assert found.outcome == "nothing decided"
    assert result(pairs, peak_bytes=0.0).outcome == "passed"


@pytest.mark.parametrize("pair", [(None, 1), (1, None)])
def test_a_case_that_only_one_side_has_is_absent_and_not_undecided(pair):
    one, other = measured(1), measured(2, planned=PLANNED[1])
    absent = tuple(other if side else None for side in pair)
    found = result([(one, one), absent], fail_on_undecided=True)
    assert (found.outcome, len(found.undecided), len(found.absent)) == ("passed", 0, 1)
    assert found.absent[0].verdict == "absent"


def test_a_case_that_was_planned_and_not_reached_is_undecided():
    one = measured(1)
    unreached = (measured(2, planned=PLANNED[1]), not_started(PLANNED[1], "cpu"))
    assert len(result([(one, one), unreached]).undecided) == 1


def test_a_gate_without_data_is_refused():
    one = measured(1)
    with pytest.raises(ValueError, match="energy_per_call: no case has it"):
        result([(one, one)], energy_per_call=0.05)
