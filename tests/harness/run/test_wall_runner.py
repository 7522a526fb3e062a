"""With fake workers: whatever they do is the result of a trial, and every wall is one record."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.cases.case import Wall
from attnbench.harness.process.replies import Prediction, WallTrial
from attnbench.harness.process.worker_process import Interrupted, WorkerFailure
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.run import wall_runner
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.runtime import Runtime
from attnbench.harness.run.wall_runner import WallRunner
from attnbench.harness.run.worker_pool import FIRST, Seat, WorkerPool
from attnbench.impls import Problem
from tests.fakes.specs import run_spec
from tests.harness.terminal.test_idle import Clock

WALL = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=64, heads=2))


class Workers(WorkerPool):
    """A pool without processes: one worker at a time, which fits up to `longest` and then fails."""

    def __init__(
        self,
        longest: int,
        beyond: WorkerFailure | WallTrial | type[Interrupted],
        predicted: int | None,
    ) -> None:
        self.longest, self.beyond, self.predicted = longest, beyond, predicted
        self.tried: list[list[int]] = []  # by worker
        self.alive = False
        self.predictions = 0

    def worker(self, seat: Seat) -> Any:
        if not self.alive:
            self.tried.append([])
            self.alive = True
        return self

    def dismiss(self, seat: Seat = FIRST) -> str | None:
        self.alive = False
        return "last words"

    def ask(self, op: str, **fields: Any) -> Any:
        self.worker(FIRST)
        if op == "predict":
            self.predictions += 1
            known = {"predicted_seq_len": self.predicted, "predicted_source": None}
            why = "" if self.predicted else "no formula"
            return Prediction(op=op, predicted_reason=why, **known)
        n = fields["case"]["seq_len"]
        self.tried[-1].append(n)
        found = tried("ok") if n <= self.longest else self.beyond
        if not isinstance(found, WallTrial):
            raise found
        return found


def tried(status: str, reason: str = "") -> WallTrial:
    return WallTrial(op="trial", status=status, reason=reason, log_tail=None, spent_s=1e-9)


def oom() -> WallTrial:
    return tried("oom", "too much")


class Heard(Listener):
    """What is known of walls before the first trial."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.known: list[tuple[str, Any]] = []

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        assert not any(self.workers.tried)
        self.known = [(wall, fields["predicted_seq_len"]) for wall, fields in walls]


def runner(workers: Workers, **changes: Any) -> WallRunner:
    spec, heard = run_spec(timeout_s=60.0, **changes), Heard(workers)
    return WallRunner(Runtime(spec=spec, pool=workers, listener=heard, attempts={WALL.id: 3}))


def predicted(one: WallRunner) -> list[tuple[str, Any]]:
    heard = one.runtime.listener
    assert isinstance(heard, Heard)
    return heard.known


def record_of(one: WallRunner, wall: Wall = WALL) -> Record:
    (record,) = one.records([wall])
    return record


def test_all_walls_are_predicted_before_the_first_trial() -> None:
    workers = Workers(5000, oom(), 5010)
    walls = [WALL, replace(WALL, backend="naive")]
    one = runner(workers)
    assert [record["predicted_seq_len"] for record in one.records(walls)] == [5010, 5010]
    assert predicted(one) == [(wall.id, 5010) for wall in walls]
    assert workers.predictions == 2


def test_a_wall_whose_prediction_loses_the_worker_is_searched_all_the_same() -> None:
    class Loses(Workers):
        def ask(self, op: str, **fields: Any) -> Any:
            if op == "predict" and not self.predictions:
                self.predictions += 1
                raise WorkerFailure(Status.CRASHED, "SIGSEGV")
            return super().ask(op, **fields)

    one = runner(Loses(5000, oom(), 5010))
    assert record_of(one).status is Status.OK
    assert predicted(one) == []


@pytest.mark.parametrize("walls", [1, 3])
def test_a_budget_that_is_spent_leaves_every_wall_with_what_fits_and_its_prediction(
    walls: int,
) -> None:
    sought = [replace(WALL, backend=f"b{number}") for number in range(walls)]
    one = runner(Workers(5000, oom(), 5010), wall_budget_s=1e-9)
    for record in one.records(sought):
        assert (record.status, record["limited_by"]) == (Status.OK, "time")
        assert [trial["seq_len"] for trial in record["probes"]] == [64]
        assert record["predicted_seq_len"] == 5010


def hurried(
    monkeypatch: pytest.MonkeyPatch,
    predicted: Mapping[str, int | None],
    cost_s: Mapping[str, float],
) -> tuple[list[str], list[Any]]:
    """Which backends were tried, in order, and their records, in 30 s. `cost_s`: of a trial at
    N = 4096, by backend; it grows with the square of N.
    """
    clock, tries = Clock(), []

    class PerBackend(Workers):
        def ask(self, op: str, **fields: Any) -> Any:
            if op == "predict":
                self.predicted = predicted[fields["wall"]["backend"]]
                return super().ask(op, **fields)
            case = fields["case"]
            tries.append(case["backend"])
            spent_s = cost_s[case["backend"]] * (case["seq_len"] / 4096) ** 2
            clock.now += spent_s
            return super().ask(op, **fields).model_copy(update={"spent_s": spent_s})

    monkeypatch.setattr(wall_runner, "time", clock)
    sought = [replace(WALL, backend=name) for name in predicted]
    one = runner(PerBackend(20_000, oom(), None), wall_budget_s=30)
    return tries, list(one.records(sought))


def test_a_backend_with_long_trials_leaves_the_others_their_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicted = {"unknown": None, "far": 20_000, "slow": 10_000}
    tries, records = hurried(monkeypatch, predicted, {"unknown": 5.0, "far": 0.01, "slow": 8.0})
    found = {record["backend"]: record for record in records}
    assert list(dict.fromkeys(tries)) == ["slow", "far", "unknown"]  # the least work first
    assert found["far"]["limited_by"] == "memory"
    assert [found[name]["limited_by"] for name in ("slow", "unknown")] == ["time", "time"]
    assert all(record["seq_len_low"] > 2000 for record in records)


def test_what_one_backend_leaves_of_its_time_serves_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicted = {"slow": 10_000, "far": 20_000}
    tries, records = hurried(monkeypatch, predicted, {"slow": 20.0, "far": 0.01})
    assert tries[0] == tries[-1] == "slow"
    slow = next(one for one in records if one["backend"] == "slow")
    assert [trial["seq_len"] for trial in slow["probes"]][:2] == [64, 512]
    assert slow["seq_len_low"] > 3000
    assert slow["spent_s"] > 15  # more than an equal share


def test_without_a_limit_walls_are_searched_as_given() -> None:
    at_leisure = runner(Workers(5000, oom(), 5010))
    sought = [replace(WALL, backend=name) for name in ("b", "a")]
    assert [one["backend"] for one in at_leisure.records(sought)] == ["b", "a"]


def test_where_not_even_one_token_fits_the_row_is_oom_and_says_so() -> None:
    record = record_of(runner(Workers(0, oom(), None)))
    assert (record.status, record["limited_by"]) == (Status.OOM, None)
    assert record.reason.startswith("nothing fits, not even N = 1: ")


@pytest.mark.parametrize("predicted", [None, 900, 3000])
@pytest.mark.parametrize(
    "fault",
    [
        WorkerFailure(Status.CRASHED, "SIGKILL, maybe by the host's out-of-memory killer"),
        WorkerFailure(Status.ERROR, "bad reply: b'x' is no event"),
    ],
)
def test_a_lost_worker_is_a_failed_trial_and_the_search_goes_on(
    fault: WorkerFailure, predicted: int | None
) -> None:
    record = record_of(runner(Workers(1000, fault, predicted)))
    assert record.status is Status.OK
    assert record["limited_by"] == "backend"
    assert record["seq_len_low"] <= 1000 < record["seq_len_high"] <= 1004
    assert {trial["reason"] for trial in record["probes"] if trial["status"] is not Status.OK} == {
        fault.reason
    }


def test_a_worker_is_used_again_only_for_a_much_longer_trial_and_never_after_a_failure() -> None:
    workers = Workers(5000, oom(), 5010)
    record_of(runner(workers))
    first, *others = workers.tried
    assert first == [64, 512, 4096]
    assert all(len(lengths) == 1 for lengths in others)
    assert not workers.alive


def test_a_wall_that_a_signal_stops_is_one_row_with_its_trials() -> None:
    one = runner(Workers(600, Interrupted, 5000))
    with pytest.raises(Interrupted):
        record_of(one)
    (record,) = one.unfinished(Status.INTERRUPTED, "stopped")
    assert (record.status, record["limited_by"]) == (Status.INTERRUPTED, None)
    assert [trial["seq_len"] for trial in record["probes"]] == [64, 512]
    assert list(one.unfinished(Status.INTERRUPTED, "stopped")) == []
