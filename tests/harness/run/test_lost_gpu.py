"""A GPU that is lost in the middle of a run, or that CUDA cannot use any more, played by fakes: the
case ends as an error, the others as unavailable, and no worker is used again after such an error.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run import worker_pool
from attnbench.harness.run.runtime import Runtime
from attnbench.harness.run.schedule import Schedule
from attnbench.harness.run.worker_pool import WorkerPool
from attnbench.harness.scenario import Plan
from attnbench.harness.worker.phases import PhaseRunner
from attnbench.impls.problem import Problem
from tests.fakes.specs import run_spec
from tests.harness.run.test_schedule import FakePool
from tests.harness.worker.configs import worker_config

LOST = "CUDA error: GPU is lost (NVRM Xid 79)"
SPEC = run_spec("cuda", plan=Plan(processes=1, min_blocks=1, max_blocks=1))


def case(seq_len: int) -> Case:
    return Case(backend="fused", problem=Problem(batch=1, seq_len=seq_len, d_model=8, heads=1))


class LosesItsGpu(FakePool):
    """Its only worker loses the GPU in the first check; no other can be started."""

    def worker(self, number: int) -> Any:
        if self.dismissed():
            raise WorkerFailure(Status.UNAVAILABLE, f"the cuda device is gone: {LOST}")
        return super().worker(number)

    def dismissed(self) -> bool:
        return any(op == "dismiss" for _, op, _ in self.notes)


def test_a_lost_gpu_is_an_error_of_its_case_and_the_others_are_unavailable() -> None:
    ended = {"status": "error", "reason": LOST, "phase": "gate", "log_tail": "trace"}
    pool: Any = LosesItsGpu([], ends={"check": ended | {"poisoned": True}})
    planned = [case(16), case(32), case(64)]
    rows = list(Schedule(Runtime(spec=SPEC, pool=pool)).records([[one] for one in planned]))
    assert [row.planned.id for row in rows] == [one.id for one in planned]
    assert [row.status for row in rows] == [Status.ERROR, Status.UNAVAILABLE, Status.UNAVAILABLE]
    assert all("GPU is lost" in row.reason for row in rows)
    assert pool.dismissed()


def test_a_worker_that_finds_no_gpu_any_more_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    killed: list[bool] = []
    worker = SimpleNamespace(ready={"why": "no device"}, kill=lambda: killed.append(True))
    monkeypatch.setattr(worker_pool, "start_worker", lambda *_, **__: worker)
    pool = WorkerPool(SPEC, tmp_path, None)
    with pytest.raises(WorkerFailure, match="the cuda device is gone: no device") as failure:
        pool.worker(0)
    assert failure.value.status is Status.UNAVAILABLE
    assert killed == [True]


@pytest.mark.parametrize(
    ("raised", "afterwards", "status", "poisoned"),
    [
        (RuntimeError(LOST), RuntimeError(LOST), "error", True),
        (RuntimeError("CUDA error: device-side assert triggered"), None, "error", True),
        (ValueError("a bug"), RuntimeError(LOST), "error", True),
        (ValueError("a bug"), None, "error", False),
        (torch.OutOfMemoryError("CUDA out of memory."), None, "oom", False),
    ],
)
def test_after_a_sticky_error_the_process_is_told_to_be_useless(
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    afterwards: Exception | None,
    status: str,
    poisoned: bool,
) -> None:
    def fail() -> None:
        raise raised

    def synchronize(_: object) -> None:
        if afterwards is not None:
            raise afterwards

    events: list[dict[str, Any]] = []
    runner = PhaseRunner(worker_config(), events.append, lambda name: None)
    runner.config = worker_config("cuda")
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    monkeypatch.setattr("attnbench.harness.worker.phases.release", lambda device: None)
    try:
        runner.run(case(16), "latency", fail)
    finally:
        runner.budget.lift()
    (ended,) = [event for event in events if event["event"] == "ended"]
    assert (ended["status"], ended["poisoned"]) == (status, poisoned)
