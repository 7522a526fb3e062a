"""Which device measures what, and that nothing is lost or doubled when devices die."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.files.errors import EnvironmentUnmet
from attnbench.harness.fleet.dispatch import run_on
from attnbench.harness.fleet.elsewhere import DevicesElsewhere
from attnbench.harness.fleet.remote import Lost, Ready
from attnbench.harness.fleet.shipping import Shipping, shipped
from attnbench.harness.process.signals import Signals
from attnbench.harness.rows.record import Planned
from attnbench.harness.rows.run_files import read_meta, read_rows
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.planning import new_run
from attnbench.harness.run.run_rows import RunRows
from attnbench.harness.scenario.selection import Selection
from tests.fakes.fleet import FakeFleet, opened
from tests.fakes.shard_runs import scenario

DIED = Lost("its Ray worker process died")


class Heard(Listener):
    def __init__(self) -> None:
        self.remarks: list[str] = []

    def remark(self, text: str) -> None:
        self.remarks.append(text)


def planned(root: Path, heard: Heard, attachments: Any = (), **changes: Any) -> RunRows:
    fleet = FakeFleet(2)
    return new_run(
        scenario(**changes),
        root,
        0,
        Selection(attachments=tuple(attachments)),
        RunOptions(command=["attnbench"], listener=heard),
        DevicesElsewhere(fleet, Signals(), Shipping(fleet, list(map(shipped, attachments)))),
    )


@pytest.fixture
def measured(tmp_path: Path):
    """A run on a fake fleet; its rows by case."""

    def run(fleet: FakeFleet, **changes: Any) -> dict[str, dict[str, Any]]:
        run.heard = Heard()
        one = planned(tmp_path, run.heard, **changes)
        run.path = one.store.path
        try:
            run_on(one, fleet, Signals())
        finally:
            rows = list(read_rows(run.path))
            cases = Counter(case["case"] for case in read_meta(run.path)["cases"])
            assert Counter(row["case"] for row in rows) == cases, "one row per planned case"
            run.rows = {row["case"]: row for row in rows}
        return run.rows

    return run


def of_length(one: Planned, seq_len: int) -> bool:
    return isinstance(one, Case) and one.problem.seq_len == seq_len


def test_no_group_is_split_over_devices_and_all_of_them_measure(measured) -> None:
    fleet = FakeFleet(2)
    rows = measured(fleet)
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert {row["host"] for row in rows.values()} == {"host0", "host1"}
    by_length: dict[int, set[str]] = {}
    for row in rows.values():
        by_length.setdefault(row["seq_len"], set()).add(row["host"])
    assert {len(hosts) for hosts in by_length.values()} == {1}, (
        "contrast heads: a length is a group"
    )


def test_what_a_device_was_measuring_when_it_was_lost_is_measured_once_more(measured) -> None:
    deaths = iter([DIED])

    def dies(number: int, one: Planned) -> Lost | None:
        return next(deaths, None) if of_length(one, 512) else None

    rows = measured(FakeFleet(1, dies))
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert any(
        "host0 was lost: its Ray worker process died" in one for one in measured.heard.remarks
    )
    assert "host0 is back" in measured.heard.remarks


def test_work_that_lost_two_devices_is_crashed_and_names_the_hosts(measured) -> None:
    fleet = FakeFleet(2, lambda number, one: DIED if of_length(one, 512) else None)
    rows = measured(fleet)
    ended = {row["seq_len"]: row["status"] for row in rows.values()}
    assert ended == {64: "ok", 128: "ok", 256: "ok", 512: "crashed", 1024: "ok"}
    crashed = next(row for row in rows.values() if row["status"] == "crashed")
    assert "host" in crashed["host"]
    assert crashed["host"] in crashed["reason"]
    assert "and host" in crashed["reason"]
    assert len(fleet.started) == 6  # five groups, one of them twice


def test_a_case_for_which_memory_ran_out_twice_is_oom_and_its_group_is_measured(measured) -> None:
    full = Lost("the host's memory was nearly full", out_of_memory=True)
    fleet = FakeFleet(2, lambda number, one: full if one.id.startswith("naive-b1-n512-") else None)
    rows = measured(fleet)
    ended = Counter((row["backend"], row["status"]) for row in rows.values())
    assert ended == {("fused", "ok"): 10, ("naive", "ok"): 8, ("naive", "oom"): 2}


def test_without_a_device_left_the_rest_is_interrupted_and_says_how_to_go_on(measured) -> None:
    fleet = FakeFleet(2, lambda number, one: DIED if of_length(one, 128) else None, back=False)
    with pytest.raises(EnvironmentUnmet, match=r"no device is left .* --resume \S+ and the same"):
        measured(fleet)
    statuses = Counter(row["status"] for row in measured.rows.values())
    assert statuses["ok"] > 0
    assert statuses["crashed"] == 4  # the group was lost on both
    assert statuses["interrupted"] == 4


def test_a_signal_ends_the_run_and_every_case_has_a_row(tmp_path: Path) -> None:
    signals, heard = Signals(), Heard()
    fleet = FakeFleet(1)
    messages = fleet.messages

    def then_ctrl_c(timeout_s: float):
        yield from messages(timeout_s)
        signals.received = 2

    fleet.messages = then_ctrl_c  # type: ignore[method-assign]
    one = planned(tmp_path, heard)
    run_on(one, fleet, signals)
    assert one.result.exit_code == 130
    statuses = Counter(row["status"] for row in read_rows(one.store.path))
    assert statuses == {"ok": 4, "interrupted": 16}


# ---- devices that join ---------------------------------------------------------------------------


def joining(fleet: FakeFleet, *joined: Ready) -> FakeFleet:
    """Devices that come as soon as something is measured."""
    messages, left = fleet.messages, list(enumerate(joined, start=len(fleet.opened)))

    def with_more(timeout_s: float):
        for number, message in messages(timeout_s):
            yield number, message
            if left:
                yield left.pop(0)

    fleet.messages = with_more  # type: ignore[method-assign]
    return fleet


def test_a_device_that_joins_measures_too_and_one_of_another_kind_does_not(measured) -> None:
    lengths = [64 * number for number in range(1, 31)]
    grid = {"seq_len": lengths, "d_model": 64, "heads": [1]}
    other = Ready(opened(2, cpu="another"))
    rows = measured(joining(FakeFleet(1), Ready(opened(1)), other), grid=grid, contrast=[])
    counts = Counter(row["host"] for row in rows.values())
    assert counts["host1"] > 10
    assert counts["host2"] == 0
    assert any(one.startswith("host2 joined with cpu 'another'") for one in measured.heard.remarks)
    hosts = [one["host"] for one in read_meta(measured.path)["devices"]]
    assert hosts == ["host0", "host1"]
    assert "host1 joined; devices now: 2" in measured.heard.remarks
    assert {row["status"] for row in rows.values()} == {"ok"}
