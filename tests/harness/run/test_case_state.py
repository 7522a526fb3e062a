"""What the parent decides of a case when its samples are complete."""

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.run.case_state import CaseState
from attnbench.impls.problem import Problem

CASE = Case(backend="fused", problem=Problem(batch=1, seq_len=32, d_model=16, heads=2))


@pytest.mark.parametrize(
    ("clocks", "wrong"),
    [
        ([(0.100, 0.010), (0.120, 0.011), (0.110, 0.010)], True),
        ([(0.012, 0.010)] * 5, False),
        ([(0.200, 0.010), (0.011, 0.010)], False),  # one late message
        ([(0.030, 0.010)] * 3 + [(0.012, 0.010)], False),
        ([(5.020, 5.000)] * 3, False),
        ([], False),
    ],
)
def test_a_clock_that_disagrees_with_the_parents_in_every_block_is_wrong(clocks, wrong):
    complaint = CaseState(case=CASE, fields={}, clocks=clocks).clock_complaint
    assert bool(complaint) is wrong
    if wrong:
        assert complaint.startswith("its blocks took at least 330 ms by the parent's clock")


@pytest.mark.parametrize(
    ("ours_s", "calls", "tries", "wrong"),
    [
        (0.053, 200, 1, False),  # 200 tiny calls, as an idle machine had them: 30.7 ms by theirs
        (0.085, 200, 2, False),
        (0.085, 200, 1, True),
        (0.120, 200, 100, True),  # no block is measured so often
        (0.053, 0, 1, True),
    ],
)
def test_what_lies_between_calls_is_no_sign_of_a_wrong_clock(ours_s, calls, tries, wrong):
    state = CaseState(case=CASE, fields={})
    for _ in range(2):
        state.clocked(ours_s, 0.0307, calls=calls, tries=tries)
    assert bool(state.clock_complaint) is wrong


@pytest.mark.parametrize(
    ("digests", "repeats", "processes_repeat"),
    [
        ({0: ["a", "a"], 1: ["a", "a"]}, True, True),
        ({0: ["a", "a"], 1: ["b", "b"], 2: ["a", "a"]}, True, False),
        ({0: ["a", "a"], 1: ["a", "b"]}, False, True),
        ({0: ["a", "a", "a", "a"]}, True, None),  # one process alone
        ({}, None, None),
    ],
)
def test_equal_inputs_repeat_if_their_digests_are_equal(digests, repeats, processes_repeat):
    found = CaseState(case=CASE, fields={}, digests=digests).repeats()
    assert found == {"repeats_exactly": repeats, "processes_repeat_exactly": processes_repeat}
