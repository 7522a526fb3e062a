"""Which device measures what, and that nothing is lost or doubled when devices die."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayError  # noqa: E402 - only with Ray

from attnbench.harness.cases.case import Case  # noqa: E402
from attnbench.harness.files.errors import EnvironmentUnmet  # noqa: E402
from attnbench.harness.fleet import ray_devices  # noqa: E402
from attnbench.harness.fleet.ray_actor import DeviceWanted  # noqa: E402
from attnbench.harness.fleet.ray_devices import RayDevices  # noqa: E402
from attnbench.harness.fleet.ray_seats import reason_of, seats_of  # noqa: E402
from attnbench.harness.process.signals import Signals  # noqa: E402
from attnbench.harness.rows.record import Planned  # noqa: E402
from attnbench.harness.rows.run_files import read_meta, read_rows  # noqa: E402
from attnbench.harness.run.engine import RunOptions  # noqa: E402
from attnbench.harness.run.listener import Listener  # noqa: E402
from attnbench.harness.run.start import new_run  # noqa: E402
from attnbench.harness.scenario.selection import Selection  # noqa: E402
from tests.fakes.fleet import FakeRay, died  # noqa: E402
from tests.fakes.shard_runs import scenario  # noqa: E402

WANTED = DeviceWanted(
    device="cpu", kind="", version="", settings={}, folders=(), allow_import=False, wait=False
)


class Heard(Listener):
    def __init__(self) -> None:
        self.remarks: list[str] = []

    def remark(self, text: str) -> None:
        self.remarks.append(text)


class Measured:
    """A run on fake devices; its rows by case, and what was said."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.patch = root, monkeypatch
        self.heard, self.signals = Heard(), Signals()

    def opened(self, fake: FakeRay, count: int | None = None) -> RayDevices:
        self.patch.setattr(ray_devices, "ray", fake)
        self.patch.setattr(ray_devices, "LOOK_EVERY_S", 0.0)
        devices = RayDevices(WANTED, count, self.signals, self.heard)
        devices.open()
        return devices

    def __call__(
        self, fake: FakeRay, count: int | None = None, **changes: Any
    ) -> dict[str, dict[str, Any]]:
        devices = self.opened(fake, count)
        options = RunOptions(command=["attnbench"], listener=self.heard)
        run = new_run(scenario(**changes), self.root, 0, Selection(), options, devices)
        self.path, self.result = run.store.path, run.result
        try:
            devices.measure(run)
        finally:
            rows = list(read_rows(self.path))
            cases = Counter(case["case"] for case in read_meta(self.path)["cases"])
            assert Counter(row["case"] for row in rows) == cases, "one row per planned case"
            self.rows = {row["case"]: row for row in rows}
        return self.rows


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    return Measured(tmp_path, monkeypatch)


def of_length(one: Planned, seq_len: int) -> bool:
    return isinstance(one, Case) and one.problem.seq_len == seq_len


def test_no_group_is_split_over_devices_and_all_of_them_measure(measured) -> None:
    rows = measured(FakeRay(2))
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert {row["host"] for row in rows.values()} == {"host0", "host1"}
    by_length: dict[int, set[str]] = {}
    for row in rows.values():
        by_length.setdefault(row["seq_len"], set()).add(row["host"])
    assert {len(hosts) for hosts in by_length.values()} == {1}, (
        "contrast heads: a length is a group"
    )


def test_what_a_device_was_measuring_when_it_was_lost_is_measured_once_more(measured) -> None:
    deaths = iter([died()])

    def dies(host: str, one: Planned) -> RayError | None:
        return next(deaths, None) if of_length(one, 512) else None

    rows = measured(FakeRay(1, dies))
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert "host0 was lost: its Ray worker process died" in measured.heard.remarks
    assert "host0 is back" in measured.heard.remarks


def test_work_that_lost_two_devices_is_crashed_and_names_the_hosts(measured) -> None:
    fake = FakeRay(2, lambda host, one: died() if of_length(one, 512) else None)
    rows = measured(fake)
    ended = {row["seq_len"]: row["status"] for row in rows.values()}
    assert ended == {64: "ok", 128: "ok", 256: "ok", 512: "crashed", 1024: "ok"}
    crashed = next(row for row in rows.values() if row["status"] == "crashed")
    assert "host" in crashed["host"]
    assert crashed["host"] in crashed["reason"]
    assert "and host" in crashed["reason"]
    assert len(fake.started) == 6  # five groups, one of them twice


def test_a_case_for_which_memory_ran_out_twice_is_oom_and_its_group_is_measured(measured) -> None:
    def dies(host: str, one: Planned) -> RayError | None:
        return OutOfMemoryError("1 worker was killed") if "naive-b1-n512-" in one.id else None

    rows = measured(FakeRay(2, dies))
    ended = Counter((row["backend"], row["status"]) for row in rows.values())
    assert ended == {("fused", "ok"): 10, ("naive", "ok"): 8, ("naive", "oom"): 2}


def test_without_a_device_left_the_rest_is_interrupted_and_says_how_to_go_on(measured) -> None:
    fake = FakeRay(2, lambda host, one: died() if of_length(one, 128) else None, back=False)
    with pytest.raises(EnvironmentUnmet, match=r"no device is left .* --resume \S+ and the same"):
        measured(fake)
    statuses = Counter(row["status"] for row in measured.rows.values())
    assert statuses["ok"] > 0
    assert statuses["crashed"] == 4  # the group was lost on both
    assert statuses["interrupted"] == 4


def test_a_signal_ends_the_run_and_every_case_has_a_row(measured) -> None:
    def then_ctrl_c(host: str, one: Planned) -> None:
        if len(fake.started) == 2:
            measured.signals.received = 2

    fake = FakeRay(1, then_ctrl_c)
    measured(fake)
    assert measured.result.exit_code == 130
    statuses = Counter(row["status"] for row in measured.rows.values())
    assert statuses["ok"] >= 4
    assert statuses["interrupted"] >= 12


def test_a_device_that_joins_measures_too_and_an_unlike_one_does_not(measured) -> None:
    lengths = [64 * number for number in range(1, 31)]
    grid = {"seq_len": lengths, "d_model": 64, "heads": [1]}

    def join(host: str, one: Planned) -> None:
        fake.hosts = ["host0", "host1", "host2"]

    fake = FakeRay(1, join, facts={"host2": {"cpu": "another"}})
    rows = measured(fake, grid=grid, contrast=[])
    counts = Counter(row["host"] for row in rows.values())
    assert counts["host1"] > 10
    assert counts["host2"] == 0
    hosts = [one["host"] for one in read_meta(measured.path)["devices"]]
    assert hosts == ["host0", "host1"]
    assert "host1 joined; devices now: 2" in measured.heard.remarks
    said = "not used: host2 has cpu 'another', host0 'fake'; a run measures with one"
    assert any(one.startswith(said) for one in measured.heard.remarks)
    assert {row["status"] for row in rows.values()} == {"ok"}


def test_another_device_takes_the_place_of_one_that_is_gone(measured) -> None:
    deaths = iter([died()])
    fake = FakeRay(3, lambda host, one: next(deaths, None), back=False)
    rows = measured(fake, count=2)
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert "host2 joined; devices now: 2" in measured.heard.remarks


# ---- which devices a run begins on ---------------------------------------------------------------


def test_unlike_devices_are_refused_by_name(measured) -> None:
    fake = FakeRay(3, facts={"host1": {"torch": "2.12.0"}})
    with pytest.raises(EnvironmentUnmet, match=r"host1 has torch '2\.12\.0', host0 '2\.13\.0'; a"):
        measured.opened(fake)


def test_one_that_cannot_be_used_is_left_out_and_another_takes_its_place(measured) -> None:
    fake = FakeRay(3, facts={"host0": "it is locked"})
    devices = measured.opened(fake, 2)
    assert [one.where["host"] for one in devices.opened.values()] == ["host1", "host2"]
    assert measured.heard.remarks == ["left out: host0: it is locked"]
    assert len(measured.opened(FakeRay(4), 2).opened) == 2


def test_too_few_devices_are_one_line_with_every_reason(measured) -> None:
    fake = FakeRay(1, facts={"host0": "it is locked"})
    with pytest.raises(EnvironmentUnmet) as refused:
        measured.opened(fake)
    said = str(refused.value)
    assert "no device of the cluster can be used (host0: it is locked); free or start more" in said


def node(name: str, *, alive: bool = True, **resources: float) -> dict[str, Any]:
    """Called as the letters of its id."""
    host = name.rstrip("0123456789")
    return {"NodeID": name, "Alive": alive, "NodeManagerHostname": host, "Resources": resources}


def test_a_host_without_a_gpu_is_one_device_with_all_its_cpus_and_needs_no_mark() -> None:
    nodes = [node("a", CPU=8), node("b"), node("c", alive=False, CPU=8)]
    (seat,) = seats_of(nodes, "cpu")
    assert (seat.node_id, seat.host, seat.resources) == ("a", "a", {"num_cpus": 8})


def test_gpus_of_different_hosts_come_before_the_second_of_one() -> None:
    nodes = [node("a", CPU=9, GPU=2), node("b", CPU=4, GPU=1), node("c", CPU=4, GPU=0.5)]
    found = [(seat.node_id, seat.resources["num_cpus"]) for seat in seats_of(nodes, "cuda")]
    assert found == [("a", 4), ("b", 4), ("a", 4)]
    assert {seat.resources["num_gpus"] for seat in seats_of(nodes, "cuda")} == {1}


def test_containers_of_one_name_are_told_apart() -> None:
    nodes = [node(name, CPU=4) for name in ("a1", "a2", "b")]
    assert [seat.host for seat in seats_of(nodes, "cpu")] == ["a (node a1)", "a (node a2)", "b"]


def test_only_rays_own_type_of_error_means_that_memory_ran_out() -> None:
    by_kill = ActorDiedError()
    by_kill.error_msg = "possible causes: (1) killed by SIGKILL by OOM killer due to high memory"
    assert reason_of(by_kill) == "its Ray worker process died"
    assert reason_of(OutOfMemoryError("1 worker(s) were killed")).startswith("Ray's memory monitor")
