"""GPU timings that deserve a doubt are flagged; a CPU has no such flags."""

import pytest

from attnbench.harness.measure.conditions import add_floor, launch_flags


def row(block=1.0, wall=1.1, launch=0.05, **more):
    return {
        "block_ms": [[[block, block]]],
        "wall_block_ms": [[[wall, wall]]],
        "launch_ms": launch,
        "graph_reason": "",
        "conditions": [[{"late_calls": 0}, {"late_calls": 0}]],
        **more,
    }


@pytest.mark.parametrize(
    ("block", "wall", "launch", "flagged"),
    [
        (0.002, 5.0, 0.05, True),  # work on a side stream: the events enclose nothing
        (0.1, 5.0, 4.98, False),  # a hundred small kernels: launching is the time
        (4.0, 5.0, 0.05, False),  # the events saw it
        (0.01, 0.15, 0.02, False),  # a tiny call: waiting for the device costs as much
        (1.0, 2.0, 0.05, True),
    ],
)
def test_the_wall_clock_beyond_launch_and_events_is_unseen_work(block, wall, launch, flagged):
    assert launch_flags(row(block, wall, launch))["unseen_work"] is flagged


def test_late_calls_are_summed_over_processes_and_blocks():
    conditions = [[{"late_calls": 1}, {}], [{"late_calls": 4}]]
    assert launch_flags(row(conditions=conditions))["late_calls"] == 5


def test_a_capture_that_failed_is_told_from_one_that_was_not_wanted():
    failed = "cannot be captured: operation not permitted"
    assert launch_flags(row(graph_reason=failed))["graph_failed"] is True
    long = "a call of more than 10 ms is not bound by its launches"
    assert launch_flags(row(graph_reason=long))["graph_failed"] is False


def test_of_several_warm_ups_the_lowest_floor_is_kept_and_null_is_not_zero():
    fields = {}
    for event in (
        {"launch_ms": None, "shortest_call_ms": 0.4},
        {"launch_ms": 3.0, "shortest_call_ms": 0.3},
        {"launch_ms": 2.0, "shortest_call_ms": 0.5},
        {},
    ):
        add_floor(fields, event)
    assert fields == {"launch_ms": 2.0, "shortest_call_ms": 0.3}
    unknown = {}
    add_floor(unknown, {})
    assert unknown == {"launch_ms": None, "shortest_call_ms": None}
