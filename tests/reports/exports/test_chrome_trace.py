"""reports/exports/chrome_trace.py: the rules of the Trace Event Format hold.

So Perfetto and chrome://tracing open it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attnbench.reports.data.load import load
from attnbench.reports.exports import export
from attnbench.reports.exports.chrome_trace import CASES, FIRST_WORKER
from tests.made_runs import case, problem, quickstart, row, write_run

BEGAN_S = datetime(2026, 11, 21, 9, 30, tzinfo=UTC).timestamp()


def checked(*runs: Path) -> list[dict[str, Any]]:
    """The events, after every rule that a reader relies on.

    Keys by phase, microseconds from 0, names for every process and thread, times in order within a
    thread, slices of a thread that lie within each other or apart.
    """
    document = json.loads(export(list(runs), "chrome-trace").content)
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    events = document["traceEvents"]
    for event in events:
        assert {"name", "ph", "ts", "pid", "tid"} <= set(event)
        assert event["ph"] in "XiCM"
        assert isinstance(event["name"], str)
        assert all(type(event[key]) is int for key in ("pid", "tid"))
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "i":
            assert event["s"] in "gpt"
        if event["ph"] == "C":
            assert event["args"]
            assert all(type(value) in (int, float) for value in event["args"].values())
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["tid"]} == named
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    assert {event["pid"] for event in events} == processes
    for thread in named:
        mine = [one for one in events if (one["pid"], one["tid"]) == thread and one["ph"] != "M"]
        assert [event["ts"] for event in mine] == sorted(event["ts"] for event in mine)
        open_until: list[float] = []
        for event in (event for event in mine if event["ph"] == "X"):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            assert not open_until or event["ts"] + event["dur"] <= open_until[-1]
            open_until.append(event["ts"] + event["dur"])
    return events


def two_cases(tmp_path: Path) -> Path:
    """Blocks of two backends in turns, in two workers, one after the other."""
    cases = [case(backend, problem(128)) for backend in ("fused", "sdpa")]
    rows = []
    for place, planned in enumerate(cases):
        conditions = [
            [
                {"wall_s": 0.5, "started_unix_s": BEGAN_S + 10 * process + 2 * block + place}
                for block in range(3)
            ]
            for process in range(2)
        ]
        rows.append(row(planned, block_ms=[[[1.0]] * 3] * 2, conditions=conditions))
    return write_run(tmp_path, cases, rows)


def test_blocks_are_in_the_thread_of_their_worker_in_the_order_of_measuring(
    tmp_path: Path,
) -> None:
    events = checked(two_cases(tmp_path))
    for process in range(2):
        blocks = [
            one for one in events if one["tid"] == FIRST_WORKER + process and one["ph"] == "X"
        ]
        assert [event["cat"] for event in blocks] == ["fused", "sdpa"] * 3
        assert [event["ts"] for event in blocks] == [
            1e6 * (10 * process + step) for step in range(6)
        ]
        assert {event["dur"] for event in blocks} == {5e5}


def test_every_case_that_began_is_marked_with_its_outcome_and_the_others_are_listed(
    tmp_path: Path,
) -> None:
    run = quickstart(tmp_path)
    done = export(run, "chrome-trace")
    document = json.loads(done.content)
    begun = [one for one in document["traceEvents"] if one["tid"] == CASES and one["ph"] == "i"]
    never = document["otherData"]["not_started"]
    frame = load(run)
    assert len(begun) + len(never) == len(frame)
    statuses = frame.set_index("case")["status"].to_dict()
    assert {one["case"]: one["status"] for one in never}.items() <= statuses.items()
    assert all(one["reason"] for one in never)
    for event in begun:
        case_id = event["name"].rpartition(": ")[2]
        assert event["args"]["status"] == statuses[case_id]
    assert any("never started" in note for note in done.notes)
    # made-up rows do not say when a block began
    assert any("no block is in the trace" in note for note in done.notes)
