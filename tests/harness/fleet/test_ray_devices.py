"""What Ray's errors mean for a run."""

from types import SimpleNamespace

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import (  # noqa: E402 - only where Ray is
    ActorDiedError,
    OutOfMemoryError,
)

from attnbench.harness.fleet import ray_devices as fleet  # noqa: E402
from attnbench.harness.fleet.ray_devices import (  # noqa: E402
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


# ---- nodes that join -----------------------------------------------------------------------------


class FakeRay:
    """Nodes that a test lists, and actors that answer at once what it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: object) -> None:
        self.answers = {
            "look": {"host": "b", "kind": "EPYC", "fingerprint": fingerprint()},
            "open": opened(1),
            **answers,
        }
        self.answers["look"]["memory_monitor"] = False  # type: ignore[index]
        self.nodes = [node("a")]
        self.asked: list[str] = []
        self.killed: list[object] = []
        monkeypatch.setattr(fleet.ray, "nodes", lambda: self.nodes)
        monkeypatch.setattr(fleet.ray, "wait", lambda waiting, **_: (waiting[:1], waiting[1:]))
        monkeypatch.setattr(fleet.ray, "get", self.get)
        monkeypatch.setattr(fleet.ray, "kill", self.killed.append)
        monkeypatch.setattr(fleet, "start_actor", self.start_actor)
        monkeypatch.setattr(fleet, "LOOK_EVERY_S", 0.0)

    def get(self, asked: object, timeout: float = 0) -> object:
        if isinstance(found := self.answers[str(asked)], Exception):
            raise found
        return found

    def start_actor(self, seat: Seat) -> object:
        def method(name: str) -> object:
            return SimpleNamespace(remote=lambda *_: self.asked.append(name) or name)

        return SimpleNamespace(**{name: method(name) for name in self.answers})

    def fleet(self, count: int | None = None) -> RayFleet:
        """One open device of node a."""
        made = RayFleet(NodeWanted(device="cpu", settings={}), lambda: None, ["a"])
        made._seats = {0: Seat(node_id="a", host="a", gpus=0, cpus=1)}
        made._actors = {0: self.start_actor(made._seats[0])}
        made._kind, made._most = "EPYC", count or fleet.MOST_DEVICES
        return made


def node(name: str, **resources: float) -> dict:
    found = resources or {RESOURCE: 1.0, "CPU": 4.0}
    return {"NodeID": name, "Alive": True, "NodeManagerHostname": name, "Resources": found}


def heard(made: RayFleet, times: int = 4) -> list:
    return [one for _ in range(times) for one in made.messages(0.0)]


def test_a_node_that_joins_is_looked_at_and_opened_in_this_order(monkeypatch) -> None:
    ray_now = FakeRay(monkeypatch)
    made = ray_now.fleet()
    assert heard(made) == []
    ray_now.nodes += [node("b"), node("head", CPU=8.0), {**node("dead"), "Alive": False}]
    made._look_for_more()
    assert made.is_growing
    assert heard(made) == [(1, Ready(opened(1)))]
    assert ray_now.asked == ["look", "open"]
    assert not made.is_growing
    assert heard(made) == [], "once"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (
            {"look": {"host": "b", "kind": "Xeon", "fingerprint": fingerprint()}},
            "it is Xeon, and the run measures on EPYC",
        ),
        (
            {"look": {"host": "b", "kind": "EPYC", "fingerprint": {"attnbench": "0.1"}}},
            "b has attnbench '0.1'",
        ),
        ({"open": "another run uses the device"}, "another run uses the device"),
        ({"open": ActorDiedError()}, "its Ray worker process died"),
    ],
)
def test_a_node_that_cannot_measure_for_this_run_is_one_remark(
    monkeypatch, answers: dict, why: str
) -> None:
    ray_now = FakeRay(monkeypatch, **answers)
    made = ray_now.fleet()
    ray_now.nodes.append(node("b"))
    ((number, remark),) = heard(made)
    assert number == 1
    assert isinstance(remark, Remark)
    assert remark.text.startswith("b joined the cluster and is not used: ")
    assert why in remark.text
    assert "\n" not in remark.text
    assert len(ray_now.killed) == 1
    assert heard(made) == [], "it is not tried again"


# ---- files of the user's -------------------------------------------------------------------------
