"""What Ray's errors mean for a run."""

from functools import partial
from types import SimpleNamespace

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import (  # noqa: E402 - only where Ray is
    ActorDiedError,
    OutOfMemoryError,
)

from attnbench.harness.fleet import ray_devices as fleet  # noqa: E402
from attnbench.harness.fleet.ray_devices import (  # noqa: E402
    RayActor,
    RayFleet,
    lost_by,
    start_actor,
)
from attnbench.harness.fleet.ray_seats import RESOURCE, Seat  # noqa: E402
from attnbench.harness.fleet.remote import (  # noqa: E402
    NodeWanted,
    Ready,
    Remark,
)
from attnbench.harness.process.fingerprint import fingerprint  # noqa: E402
from tests.fakes.fleet import opened  # noqa: E402


def test_only_rays_own_type_of_error_means_that_memory_ran_out() -> None:
    assert lost_by(OutOfMemoryError("1 worker(s) were killed")).out_of_memory
    by_kill = ActorDiedError()
    by_kill.error_msg = "possible causes: (1) killed by SIGKILL by OOM killer due to high memory"
    lost = lost_by(by_kill)
    assert (lost.out_of_memory, lost.reason) == (False, "its Ray worker process died")


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


HERE = {"host": "b", "kind": "EPYC", "fingerprint": fingerprint()}


# ---- nodes that join -----------------------------------------------------------------------------


class FakeActor(RayActor):
    """Sees and opens what a test says."""

    def __init__(self, look: dict, opens: object) -> None:
        self.looked, self.opens, self.asked = {**look, "memory_monitor": False}, opens, list[str]()
        # A reference is a function here; what it refers to is there at once.
        self.join = SimpleNamespace(remote=lambda *of: partial(RayActor.join, self, *of))

    def look(self, device: str) -> dict:
        self.asked.append("look")
        return self.looked

    def open(self, *given: object) -> object:
        self.asked.append("open")
        return self.opens


@pytest.fixture
def cluster(monkeypatch):
    """Nodes that a test lists, of which the first is measured on."""
    found = SimpleNamespace(nodes=[node("a")], killed=[], actor=FakeActor(HERE, opened(1)))
    monkeypatch.setattr(fleet.ray, "nodes", lambda: found.nodes)
    monkeypatch.setattr(fleet.ray, "put", lambda given: lambda: given)
    monkeypatch.setattr(fleet.ray, "wait", lambda waiting, **_: (waiting[:1], waiting[1:]))
    monkeypatch.setattr(fleet.ray, "get", lambda asked, timeout=0: asked())
    monkeypatch.setattr(fleet.ray, "kill", found.killed.append)
    monkeypatch.setattr(fleet, "start_actor", lambda seat: found.actor)
    monkeypatch.setattr(fleet, "LOOK_EVERY_S", 0.0)
    found.fleet = RayFleet(NodeWanted(device="cpu", settings={}), lambda: None, ["a"])
    found.fleet._seats = {0: Seat(node_id="a", host="a", gpus=0, cpus=1)}
    found.fleet._actors = {0: found.actor}
    found.fleet._kind, found.fleet._most = "EPYC", fleet.MOST_DEVICES
    return found


def node(name: str, **resources: float) -> dict:
    found = resources or {RESOURCE: 1.0, "CPU": 4.0}
    return {"NodeID": name, "Alive": True, "NodeManagerHostname": name, "Resources": found}


def heard(made: RayFleet, times: int = 4) -> list:
    return [one for _ in range(times) for one in made.messages(0.0)]


def test_a_node_that_joins_is_looked_at_and_opened_in_this_order(cluster) -> None:
    made = cluster.fleet
    assert heard(made) == []
    cluster.nodes += [node("b"), node("head", CPU=8.0), {**node("dead"), "Alive": False}]
    made._look_for_more()
    assert made.is_growing
    assert heard(made) == [(1, Ready(opened(1)))]
    assert cluster.actor.asked == ["look", "open"]
    assert not made.is_growing
    assert heard(made) == [], "once"


@pytest.mark.parametrize(
    ("looked", "opens", "why"),
    [
        ({**HERE, "kind": "Xeon"}, None, "it is Xeon, and the run measures on EPYC"),
        ({**HERE, "fingerprint": {"attnbench": "0.1"}}, None, "b has attnbench '0.1'"),
        (HERE, "another run uses the device", "another run uses the device"),
    ],
)
def test_a_node_that_cannot_measure_for_this_run_is_one_remark(cluster, looked, opens, why) -> None:
    cluster.actor = FakeActor(looked, opens)
    cluster.nodes.append(node("b"))
    ((number, remark),) = heard(cluster.fleet)
    assert number == 1
    assert isinstance(remark, Remark)
    assert remark.text.startswith("b joined the cluster and is not used: ")
    assert why in remark.text
    assert "\n" not in remark.text
    assert len(cluster.killed) == 1
    assert heard(cluster.fleet) == [], "it is not tried again"
