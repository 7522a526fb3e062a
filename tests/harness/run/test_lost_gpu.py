"""A GPU that is lost in the middle of a run, played by fakes: the case ends as an error, the others
as unavailable, and no worker is used again after an error.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.process.child import CaseEnded
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import worker_pool
from attnbench.harness.run.runtime import Runtime
from attnbench.harness.run.schedule import Schedule
from attnbench.harness.run.worker_pool import FIRST, Seat, WorkerPool
from attnbench.harness.scenario import Plan
from attnbench.impls.problem import Problem
from tests.fakes.specs import run_spec
from tests.harness.run.test_schedule import FakePool

LOST = "CUDA error: GPU is lost (NVRM Xid 79)"
SPEC = run_spec("cuda", plan=Plan(processes=1, min_blocks=1, max_blocks=1))


def case(seq_len: int) -> Case:
    return Case(backend="fused", problem=Problem(batch=1, seq_len=seq_len, d_model=8, heads=1))


class LosesItsGpu(FakePool):
    """Its only worker loses the GPU in the first check; no other can be started."""

    def worker(self, seat: Seat) -> Any:
        if self.dismissed():
            raise WorkerFailure(Status.UNAVAILABLE, f"the cuda device is gone: {LOST}")
        return super().worker(seat)

    def dismissed(self) -> bool:
        return any(op == "dismiss" for _, op, _ in self.notes)


def test_a_lost_gpu_is_an_error_of_its_case_and_the_others_are_unavailable() -> None:
    lost = CaseEnded(Status.ERROR, LOST, "gate", "trace")
    pool: Any = LosesItsGpu([], breaks=("check", "fused", lost))
    planned = [case(16), case(32), case(64)]
    rows = list(Schedule(Runtime(spec=SPEC, pool=pool)).records([[one] for one in planned]))
    assert [row.id for row in rows] == [one.id for one in planned]
    assert [row.status for row in rows] == [Status.ERROR, Status.UNAVAILABLE, Status.UNAVAILABLE]
    assert all("GPU is lost" in row.reason for row in rows)
    assert pool.dismissed()


class FakeWorker(SimpleNamespace):
    """Answers nothing; `killed` counts how often it was."""

    pid, killed = 0, 0
    log = SimpleNamespace(open=lambda path: None, tail=lambda: None, failure=None)

    def ask(self, op: str, timeout_s: float, **fields: Any) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def kill(self, term_s: float = 0.0) -> None:
        self.killed += 1


def test_a_worker_that_finds_no_gpu_any_more_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    worker = FakeWorker(ready=SimpleNamespace(why="no device"))
    monkeypatch.setattr(worker_pool, "start_worker", lambda *_, **__: worker)
    pool = WorkerPool(SPEC, tmp_path, None)
    with pytest.raises(WorkerFailure, match="the cuda device is gone: no device") as failure:
        pool.worker(FIRST)
    assert failure.value.status is Status.UNAVAILABLE
    assert worker.killed == 1


@pytest.mark.parametrize(("device", "alive"), [("cuda", 1), ("cpu", 3)])
def test_on_a_gpu_one_process_at_a_time_has_a_context(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, device: str, alive: int
) -> None:
    started: list[FakeWorker] = []

    def start(*_: Any, **__: Any) -> Any:
        started.append(FakeWorker(ready=SimpleNamespace(why="")))
        return started[-1]

    monkeypatch.setattr(worker_pool, "start_worker", start)
    pool = WorkerPool(run_spec(device), tmp_path, None)
    for seat in (FIRST, Seat(0, "mine"), Seat(1)):
        pool.worker(seat)
        with pool.for_check(Seat(1)):
            pass
    assert sum(not worker.killed for worker in started) == alive
