"""What the parent decides of a case when its samples are complete."""

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.run.case_state import CaseState, Verdicts
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
        assert complaint.startswith("its blocks took 330 ms by the clock of the parent process")


@pytest.mark.parametrize(
    ("told", "repeat"),
    [  # process, check, digest
        ([(0, "process", "a"), (1, "process", "a")], True),
        ([(0, "process", "a"), (1, "process", "b"), (2, "process", "a")], False),
        ([(0, "process", "a"), (1, "process", "a"), (1, "process", "b")], False),
        ([(0, "process", "a"), (0, "process", "a")], None),  # one process alone
        ([(0, "process", "a"), (1, "after", None)], None),
    ],
)
def test_processes_repeat_one_another_if_all_their_digests_are_equal(told, repeat):
    usual = {"rows_seed": 1, "values_seed": 0, "complaint": ""}
    verdicts = Verdicts(
        [(process, {"check": of, "output_digest": one, **usual}) for process, of, one in told]
    )
    assert verdicts.fields().get("processes_repeat_exactly") is repeat


@pytest.mark.parametrize(
    ("heard", "repeats"),
    [([None], None), ([None, True, None], True), ([True, False, True], False)],
)
def test_one_process_that_did_not_repeat_itself_is_enough(heard, repeats):
    state = CaseState(case=CASE, fields={})
    for one in heard:
        state.repeated(one)
    assert state.fields.get("repeats_exactly") is repeats
