"""reports/comparison/verdict.py: a change for the worse beyond its margin fails.

A gate without data is refused.
"""

import pytest

from attnbench.reports.comparison.verdict import Gate, Rules, apply, case_verdicts
from attnbench.reports.data.run_meta import not_reached
from tests.made_runs import PLANNED, loaded, row
from tests.reports.comparison.test_verdict import measured, scaled

A = measured(1, peak_bytes=100)
SLOWER, FASTER = scaled(A, 1.2), scaled(A, 1 / 1.2)
MORE = A | {"peak_bytes": 101}
FAILED = loaded(row(PLANNED[0], "oom"))
MISSING = {"device": "cpu", **PLANNED[1], **not_reached()}
UNDECIDED = (measured(1, processes=1), measured(2, processes=1))
NOISY = UNDECIDED[1] | {"contended_blocks": 4}
LATENCY, BYTES = {"latency": 0.05}, {"peak_bytes": 0.0}
OTHER = measured(2, planned=PLANNED[1])


def result(pairs, margins, fail_on_undecided=False):
    gate = Gate(margins=margins, fail_on_undecided=fail_on_undecided)
    return apply(gate, case_verdicts(pairs, Rules()))


@pytest.mark.parametrize(
    ("pairs", "margins", "outcome", "regressions"),
    [
        ([(A, A)], LATENCY, "passed", []),
        ([(A, FASTER)], LATENCY, "passed", []),
        ([(A, SLOWER)], LATENCY, "failed", ["slower"]),
        ([(A, SLOWER)], {"latency": 0.25}, "passed", []),
        ([(A, scaled(A, 1.02))], {"latency": 0.01}, "failed", ["slower"]),
        # metrics without a margin do not fail
        ([(A, SLOWER | {"peak_bytes": 101})], BYTES, "failed", ["more"]),
        ([(A, SLOWER | {"peak_bytes": 101})], LATENCY, "failed", ["slower"]),
        ([(A, MORE)], {"peak_bytes": 0.02}, "passed", []),
        # a broken case does, whatever is gated
        ([(A, FAILED)], LATENCY, "failed", ["broken"]),
        ([(A, FAILED)], BYTES, "failed", ["broken"]),
        # a metric that decided nothing is not hidden by another that did
        ([UNDECIDED], LATENCY, "nothing decided", []),
        ([UNDECIDED], LATENCY | BYTES, "nothing decided", []),
        ([UNDECIDED], BYTES, "passed", []),
        ([UNDECIDED], {"latency": None}, "passed", []),
        ([(A, measured(2, 1.5))], {"latency": None}, "failed", ["slower"]),
        ([(UNDECIDED[0], NOISY)], {"latency": None}, "nothing decided", []),
    ],
)
def test_what_a_gate_makes_of_changes(pairs, margins, outcome, regressions):
    found = result(pairs, margins)
    assert (found.outcome, [one.verdict for one in found.regressions]) == (outcome, regressions)
    if outcome == "nothing decided":
        (idle,) = found.idle
        assert (idle.metric, idle.cases, idle.reasons["one_process"]) == ("latency", 1, 1)
        assert result(pairs, margins, fail_on_undecided=True).outcome == "failed"


@pytest.mark.parametrize(
    ("beside", "undecided", "absent"),
    [
        (UNDECIDED, 1, 0),
        ((OTHER, MISSING), 1, 0),
        ((None, OTHER), 0, 1),
        ((OTHER, None), 0, 1),
    ],
)
def test_undecided_beside_a_decided_case_passes_unless_requested_otherwise(
    beside, undecided, absent
):
    found = result([(A, A), beside], LATENCY)
    assert (found.outcome, len(found.undecided), len(found.absent)) == ("passed", undecided, absent)
    strict = result([(A, A), beside], LATENCY, fail_on_undecided=True)
    assert strict.outcome == ("failed" if undecided else "passed")


def test_a_gate_without_data_is_refused():
    with pytest.raises(ValueError, match="energy_per_call: no case has it"):
        result([(A, A)], {"energy_per_call": 0.05})
