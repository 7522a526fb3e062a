"""The gate: what became worse by more than asked stops, and a gate that sees nothing is refused."""

import pytest

from attnbench.reports.comparison.case_samples import side_of
from attnbench.reports.comparison.gate import Gate, apply
from attnbench.reports.comparison.verdict import Terms, judge

from ..fake_runs import row
from .test_verdict import PLANNED, measured, scaled


def outcome(pairs, fail_on_undecided=False, **margins):
    gate = Gate(margins=margins or {"latency": 0.05}, fail_on_undecided=fail_on_undecided)
    return apply(gate, judge(pairs, Terms(given=gate.margins)))


def test_a_slower_case_is_a_regression_and_a_faster_one_is_not():
    one = measured(1)
    assert not outcome([(one, scaled(one, 1.2))]).passed
    assert outcome([(one, scaled(one, 1 / 1.2))]).passed
    assert outcome([(one, one)]).passed


def test_the_margin_is_used_as_given():
    one = measured(1)
    assert outcome([(one, scaled(one, 1.2))], latency=0.25).passed
    assert not outcome([(one, scaled(one, 1.02))], latency=0.01).passed


def test_what_is_not_gated_does_not_stop():
    pairs = [(measured(1, peak_bytes=100), scaled(measured(1, peak_bytes=101), 1.2))]
    assert [one.metric for one in outcome(pairs, peak_bytes=0.0).regressions] == ["peak_bytes"]
    assert [one.metric for one in outcome(pairs, peak_bytes=0.02, latency=0.05).regressions] == [
        "latency"
    ]


def test_a_broken_case_is_a_regression_whatever_is_gated():
    pairs = [(measured(1), side_of(row(PLANNED[0], "oom")))]
    for margins in ({"latency": 0.05}, {"peak_bytes": 0.0}):
        assert [one.verdict for one in outcome(pairs, **margins).regressions] == ["broken"]


def test_undecided_passes_unless_asked_otherwise():
    pairs = [(measured(1, processes=1), measured(2, processes=1))]
    assert outcome(pairs).passed
    assert len(outcome(pairs).undecided) == 1
    assert not outcome(pairs, fail_on_undecided=True).passed


def test_a_case_that_is_only_in_the_new_run_is_not_undecided_for_the_gate():
    one = measured(1)
    assert outcome(
        [(one, one), (None, measured(2, planned=PLANNED[1]))], fail_on_undecided=True
    ).passed
    assert not outcome(
        [(one, one), (measured(2, planned=PLANNED[1]), None)], fail_on_undecided=True
    ).passed


def test_a_gate_that_sees_nothing_is_refused():
    one = measured(1)
    with pytest.raises(ValueError, match="energy_per_call: no case has it"):
        outcome([(one, one)], energy_per_call=0.05)
