"""Workers that are fakes: whatever they do is a fact about a probe, and every wall becomes one
record.
"""

from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.cases import Wall, wall_of
from attnbench.harness.process.worker_process import Fault, Interrupted
from attnbench.harness.record import Status
from attnbench.harness.run.wall_runner import Hunt
from attnbench.harness.run.worker_pool import Crew, Terms
from attnbench.harness.scenario import Plan
from attnbench.impls import Problem

WALL = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=64, heads=2))
TERMS = Terms(
    device="cpu",
    timeout_s=60,
    budget_bytes=1 << 20,
    plan=Plan(),
    measure=(),
    seed=0,
    baseline=None,
    contrast=(),
)


class Workers(Crew):
    """A crew without processes: one worker at a time, which fits up to `longest`, and beyond it
    does what it is told.
    """

    def __init__(
        self,
        longest: int,
        beyond: Fault | dict[str, Any] | type[Interrupted],
        predicted: int | None,
    ) -> None:
        self.longest, self.beyond, self.predicted = longest, beyond, predicted
        self.terms = TERMS
        self.tried: list[list[int]] = []  # by worker
        self.alive = False
        self.pythons: set[str | None] = set()

    def worker(self, number: int, python: str | None = None) -> Any:
        self.pythons.add(python)
        if not self.alive:
            self.tried.append([])
            self.alive = True
        return self

    def dismiss(self, number: int, python: str | None = None) -> str | None:
        self.alive = False
        return "last words"

    def send(self, request: dict[str, Any]) -> None:
        self.events: list[dict[str, Any] | Fault | type[Interrupted]] = [{"event": "done"}]
        if request["op"] == "predict":
            why = "" if self.predicted else "no formula"
            facts = {
                "predicted_seq_len": self.predicted,
                "predicted_source": None,
                "predicted_reason": why,
            }
            self.events.insert(0, {"event": "predicted", **facts})
            return
        n = request["cases"][0]["seq_len"]
        self.tried[-1].append(n)
        fits = {"event": "probed", "status": "ok", "reason": "", "log_tail": None, "spent_s": 1e-9}
        self.events.insert(0, fits if n <= self.longest else self.beyond)

    def receive(self, timeout_s: float) -> dict[str, Any]:
        event = self.events.pop(0)
        if not isinstance(event, dict):
            raise event
        return dict(event)


def oom() -> dict[str, Any]:
    return {
        "event": "probed",
        "status": "oom",
        "reason": "too much",
        "log_tail": None,
        "spent_s": 1e-9,
    }


def hunt(workers: Workers) -> Hunt:
    return Hunt(TERMS, workers, {WALL.id: 3}, lambda *_: None)


def test_an_interval_is_found_beside_the_prediction() -> None:
    record = hunt(Workers(5000, oom(), 5010)).record(WALL)
    row = record.row()
    assert (row["kind"], row["status"], row["attempt"], row["limited_by"]) == (
        "wall",
        "ok",
        4,
        "memory",
    )
    assert row["seq_len_low"] <= 5000 < row["seq_len_high"]
    assert row["predicted_seq_len"] == 5010


def test_a_wall_is_looked_for_in_its_own_environment() -> None:
    workers = Workers(5000, Fault(Status.CRASHED, "SIGKILL"), None)
    wall = replace(WALL, python="new")
    row = hunt(workers).record(wall).row()
    assert (row["case"], row["python"], row["status"]) == (
        "wall-fused-b1-d64-h2-fp32-forward-core-new",
        "new",
        "ok",
    )
    assert workers.pythons == {"new"}
    assert wall_of(wall.fields()) == wall
    assert wall.at(8).python == "new"


@pytest.mark.parametrize("predicted", [None, 900, 3000])
@pytest.mark.parametrize(
    "fault",
    [
        Fault(Status.CRASHED, "SIGKILL, maybe by the host's out-of-memory killer"),
        Fault(Status.ERROR, "bad reply: b'x' is no event"),
    ],
)
def test_a_worker_that_is_lost_is_a_probe_that_failed_and_the_search_goes_on(
    fault: Fault, predicted: int | None
) -> None:
    record = hunt(Workers(1000, fault, predicted)).record(WALL)
    assert record.status is Status.OK
    assert record.limited_by == "backend"
    assert record.seq_len_low is not None
    assert record.seq_len_high is not None
    assert record.seq_len_low <= 1000 < record.seq_len_high <= 1004
    assert {trial.reason for trial in record.probes if trial.status is not Status.OK} == {
        fault.reason
    }


def test_a_timeout_ends_the_search_with_what_was_verified() -> None:
    record = hunt(Workers(1000, Fault(Status.TIMEOUT, "still running"), 5000)).record(WALL)
    assert (record.status, record.limited_by, record.seq_len_low, record.seq_len_high) == (
        Status.OK,
        "time",
        512,
        None,
    )
    assert (
        record.probes[-1].reason == "more than 60 s; raise it with --timeout, or give less memory"
    )


def test_a_worker_is_used_again_only_for_a_much_longer_probe_and_never_after_a_failure() -> None:
    workers = Workers(5000, oom(), 5010)
    hunt(workers).record(WALL)
    first, *others = workers.tried
    assert first == [64, 512, 4096]
    assert all(len(lengths) == 1 for lengths in others)
    assert not workers.alive


def test_where_no_worker_can_be_started_the_row_says_so() -> None:
    class NoWorkers(Workers):
        def worker(self, number: int, python: str | None = None) -> Workers:
            raise Fault(Status.UNAVAILABLE, "the cuda device is gone")

    record = hunt(NoWorkers(1, oom(), 1)).record(WALL)
    assert (record.status, record.reason) == (Status.UNAVAILABLE, "the cuda device is gone")
    assert record.probes == ()


def test_what_was_under_way_when_a_signal_came_is_one_row_with_its_probes() -> None:
    one = hunt(Workers(600, Interrupted, 5000))
    with pytest.raises(Interrupted):
        one.record(WALL)
    (record,) = one.unfinished(Status.INTERRUPTED, "stopped")
    assert (record.status, record.limited_by) == (Status.INTERRUPTED, None)
    assert [trial.seq_len for trial in record.probes] == [64, 512]
    assert list(one.unfinished(Status.INTERRUPTED, "stopped")) == []
