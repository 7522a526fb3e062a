"""What Ray's errors mean for a run."""

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import (  # noqa: E402 - only where Ray is
    ActorDiedError,
    ActorUnschedulableError,
    OutOfMemoryError,
)

from attnbench.harness.on_ray.fleet import lost_by, reason_of, start_actor  # noqa: E402
from attnbench.harness.on_ray.seats import RESOURCE, Seat  # noqa: E402


def test_only_rays_own_type_of_error_means_that_memory_ran_out() -> None:
    assert lost_by(OutOfMemoryError("1 worker(s) were killed")).out_of_memory
    by_kill = ActorDiedError()
    by_kill.error_msg = "possible causes: (1) killed by SIGKILL by OOM killer due to high memory"
    lost = lost_by(by_kill)
    assert (lost.out_of_memory, lost.reason) == (False, "its Ray worker process died")


def test_a_dead_node_is_named_so() -> None:
    assert reason_of(ActorUnschedulableError("node affinity")) == "its Ray node died"


@pytest.mark.parametrize(("gpus", "wanted"), [(0, {RESOURCE: 1}), (1, {})])
def test_ray_starts_nothing_again_by_itself(monkeypatch, gpus: int, wanted: dict) -> None:
    options: dict = {}

    class Remote:
        def options(self, **given):
            options.update(given)
            return self

        def remote(self) -> None: ...

    monkeypatch.setattr(ray, "remote", lambda _: Remote())
    start_actor(Seat(node_id="0" * 56, host="a", gpus=gpus, cpus=4))
    assert options["max_restarts"] == options["max_task_retries"] == 0
    assert (options["num_gpus"], options["num_cpus"]) == (gpus, 4)
    assert options["resources"] == wanted
