"""A GPU that is lost in the middle of a run, played by fakes: the case ends as an error, the others
as unavailable, and no worker is used again after an error.
"""

from typing import Any

from attnbench.harness.cases.case import Case
from attnbench.harness.process.child import CaseEnded
from attnbench.harness.process.worker_process import WorkerFailure
from attnbench.harness.rows.record import Status
from attnbench.harness.run.runtime import Runtime
from attnbench.harness.run.schedule import Schedule
from attnbench.harness.run.worker_pool import Seat
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
