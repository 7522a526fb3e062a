"""What Ray's errors mean for a run, and which devices a run is not opened on."""

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import (  # noqa: E402 - only where Ray is
    ActorDiedError,
    OutOfMemoryError,
)

from attnbench.harness.fleet.node_device import settings_here  # noqa: E402
from attnbench.harness.fleet.ray_actor import RayActor, lost_by, start_actor  # noqa: E402
from attnbench.harness.fleet.ray_seats import RESOURCE, Seat  # noqa: E402
from attnbench.harness.fleet.remote import NodeWanted  # noqa: E402
from attnbench.harness.process.device_lock import device_lock  # noqa: E402


def test_only_rays_own_type_of_error_means_that_memory_ran_out() -> None:
    assert lost_by(OutOfMemoryError("1 worker(s) were killed")).out_of_memory
    by_kill = ActorDiedError()
    by_kill.error_msg = "possible causes: (1) killed by SIGKILL by OOM killer due to high memory"
    lost = lost_by(by_kill)
    assert (lost.out_of_memory, lost.reason) == (False, "its Ray worker process died")


@pytest.mark.parametrize(("gpus", "wanted"), [(0, {RESOURCE: 1}), (1, {})])
def test_ray_lists_an_actor_by_its_name_and_starts_nothing_again(monkeypatch, gpus, wanted) -> None:
    options: dict = {}

    class Remote:
        def options(self, **given):
            options.update(given)
            return self

        def remote(self) -> None: ...

    monkeypatch.setattr(ray, "remote", lambda _: Remote())
    start_actor(Seat(node_id="0" * 56, host="a", gpus=gpus, cpus=4), "attnbench 1 on a")
    assert options["max_restarts"] == options["max_task_retries"] == 0
    assert (options["num_gpus"], options["num_cpus"]) == (gpus, 4)
    assert options["resources"] == wanted
    assert options["name"] == "attnbench 1 on a"


def test_a_device_of_another_kind_or_code_or_that_another_run_holds_is_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray, "get", lambda given: given)
    actor = RayActor()
    here = actor.look("cpu")
    kind, code, wanted = (
        here["kind"],
        here["fingerprint"],
        [NodeWanted(device="cpu", settings=settings_here())],
    )
    other = actor.join("cpu", "Xeon", code, wanted)
    assert other == f"it is {kind}, and the run measures on Xeon"
    assert "has attnbench" in actor.join("cpu", kind, {**code, "attnbench": "0.1"}, wanted)
    with device_lock("cpu", wait=False, check=lambda: None):
        assert "is measuring on this cpu" in actor.join("cpu", kind, code, wanted)
    actor.call("close")
