"""With fake workers: whatever they do is the result of a trial, and every wall is one record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from attnbench.harness.cases.case import Wall
from attnbench.harness.process.replies import WORKER, Reply
from attnbench.harness.process.worker_process import Interrupted, WorkerFailure
from attnbench.harness.rows.record import Record, Status
from attnbench.harness.run import wall_runner
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.wall_runner import WallRunner
from attnbench.harness.run.worker_pool import FIRST, Runtime, Seat, WorkerPool
from attnbench.impls import Problem
from tests.fakes.specs import run_spec
from tests.harness.terminal.test_idle import Clock

WALL = Wall(backend="fused", problem=Problem(batch=1, seq_len=1, d_model=64, heads=2))
KILLED = WorkerFailure(Status.CRASHED, "SIGKILL, maybe by the host's out-of-memory killer")
Trial = Callable[[str, int], tuple[str, float] | Exception]
"""Of a backend at N: how it ends, and how long it takes."""


def up_to(longest: int, beyond: str | Exception = "oom") -> Trial:
    def trial(_: str, n: int) -> tuple[str, float] | Exception:
        found = "ok" if n <= longest else beyond
        return found if isinstance(found, Exception) else (found, 1e-9)

    return trial


class Workers(WorkerPool):
    """A pool without processes. `tried`: the lengths that each worker tried."""

    def __init__(self, trial: Trial, predicted: Mapping[str, int | None]) -> None:
        self.trial, self.predicted = trial, predicted
        self.tried: list[list[int]] = []
        self.asked: list[str] = []  # the backends, in order
        self.alive = False

    def worker(self, seat: Seat) -> Any:
        assert seat == FIRST
        self.tried += [] if self.alive else [[]]
        self.alive = True
        return self

    def dismiss(self, seat: Seat = FIRST) -> str | None:
        self.alive = False
        return "last words"

    def ask(self, op: str, **fields: Any) -> Reply:
        self.worker(FIRST)
        if op == "predict":
            known = self.predicted[fields["wall"]["backend"]]
            why = "" if known else "no formula"
            said = {"predicted_seq_len": known, "predicted_source": None, "predicted_reason": why}
            return WORKER[op].model_validate({"op": op, **said})
        case = fields["case"]
        self.asked.append(case["backend"])
        self.tried[-1].append(case["seq_len"])
        found = self.trial(case["backend"], case["seq_len"])
        if isinstance(found, Exception):
            raise found
        status, spent_s = found
        said = {"status": status, "reason": "" if status == "ok" else "too much"}
        return WORKER[op].model_validate({"op": op, "log_tail": None, "spent_s": spent_s, **said})


class Heard(Listener):
    """What is known of walls before the first trial."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.known: list[Any] = []

    def predicted(self, walls: Sequence[tuple[str, Mapping[str, Any]]], spent_s: float) -> None:
        assert not self.workers.asked
        self.known = [fields["predicted_seq_len"] for _, fields in walls]


def runner(
    trial: Trial, predicted: Mapping[str, int | None] | int | None, **limits: Any
) -> tuple[WallRunner, Workers]:
    by_backend = predicted if isinstance(predicted, Mapping) else {"fused": predicted}
    workers = Workers(trial, by_backend)
    spec = run_spec(timeout_s=60.0, **limits)
    return WallRunner(Runtime(spec=spec, pool=workers, listener=Heard(workers))), workers


def walls(*backends: str) -> list[Wall]:
    return [replace(WALL, backend=name) for name in backends]


def record_of(trial: Trial, predicted: int | None) -> Record:
    (record,) = runner(trial, predicted)[0].records([WALL])
    return record


def test_a_budget_that_is_spent_leaves_every_wall_with_what_fits_and_its_prediction() -> None:
    one, _ = runner(up_to(5000), dict.fromkeys("abc", 5010), wall_budget_s=1e-9)
    for record in one.records(walls(*"abc")):
        assert (record.status, record["limited_by"]) == (Status.OK, "time")
        assert [trial["seq_len"] for trial in record["probes"]] == [64]
        assert record["predicted_seq_len"] == 5010
    heard = one.runtime.listener
    assert isinstance(heard, Heard)
    assert heard.known == [5010] * 3


def hurried(
    monkeypatch: pytest.MonkeyPatch,
    predicted: Mapping[str, int | None],
    cost_s: Mapping[str, float],
) -> tuple[list[str], dict[str, Record]]:
    """Which backends were tried, in order, and their records, in 30 s. `cost_s`: of a trial at
    N = 4096, by backend; it grows with the square of N.
    """
    clock = Clock()

    def trial(backend: str, n: int) -> tuple[str, float]:
        spent_s = cost_s[backend] * (n / 4096) ** 2
        clock.now += spent_s
        return "ok" if n <= 20_000 else "oom", spent_s

    monkeypatch.setattr(wall_runner, "time", clock)
    one, workers = runner(trial, predicted, wall_budget_s=30)
    found = {record["backend"]: record for record in one.records(walls(*predicted))}
    return workers.asked, found


def test_a_backend_with_long_trials_leaves_the_others_their_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicted = {"unknown": None, "far": 20_000, "slow": 10_000}
    tries, found = hurried(monkeypatch, predicted, {"unknown": 5.0, "far": 0.01, "slow": 8.0})
    assert list(dict.fromkeys(tries)) == ["slow", "far", "unknown"]  # the least work first
    limits = {name: record["limited_by"] for name, record in found.items()}
    assert limits == {"far": "memory", "slow": "time", "unknown": "time"}
    assert all(record["seq_len_low"] > 2000 for record in found.values())


def test_what_one_backend_leaves_of_its_time_serves_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predicted = {"slow": 10_000, "far": 20_000}
    tries, found = hurried(monkeypatch, predicted, {"slow": 20.0, "far": 0.01})
    assert tries[0] == tries[-1] == "slow"
    assert found["slow"]["seq_len_low"] > 3000
    assert found["slow"]["spent_s"] > 15  # more than an equal share


def test_where_not_even_one_token_fits_the_row_is_oom_and_says_so() -> None:
    record = record_of(up_to(0), None)
    assert (record.status, record["limited_by"]) == (Status.OOM, None)
    assert record.reason.startswith("nothing fits, not even N = 1: ")


@pytest.mark.parametrize("predicted", [None, 900, 3000])
def test_a_lost_worker_is_a_failed_trial_and_the_search_goes_on(predicted: int | None) -> None:
    record = record_of(up_to(1000, KILLED), predicted)
    assert record.status is Status.OK
    assert record["limited_by"] == "backend"
    assert record["seq_len_low"] <= 1000 < record["seq_len_high"] <= 1004
    failed = {trial["reason"] for trial in record["probes"] if trial["status"] != "ok"}
    assert failed == {KILLED.reason}


def test_a_worker_is_used_again_only_for_a_much_longer_trial_and_never_after_a_failure() -> None:
    one, workers = runner(up_to(5000), 5010)
    list(one.records([WALL]))
    first, *others = workers.tried
    assert first == [64, 512, 4096]
    assert all(len(lengths) == 1 for lengths in others)
    assert not workers.alive


def test_a_wall_that_a_signal_stops_is_one_row_with_its_trials() -> None:
    one, _ = runner(up_to(600, Interrupted()), 5000)
    with pytest.raises(Interrupted):
        list(one.records([WALL]))
    (record,) = one.unfinished(Status.INTERRUPTED, "stopped")
    assert (record.status, record["limited_by"]) == (Status.INTERRUPTED, None)
    assert [trial["seq_len"] for trial in record["probes"]] == [64, 512]
    assert list(one.unfinished(Status.INTERRUPTED, "stopped")) == []
