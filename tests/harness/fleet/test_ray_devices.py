"""What Ray's errors mean for a run, and which devices of a cluster a run is opened on."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

ray = pytest.importorskip("ray")
from ray.exceptions import (  # noqa: E402 - only where Ray is
    ActorDiedError,
    GetTimeoutError,
    NodeDiedError,
    OutOfMemoryError,
    RayError,
)

from attnbench.harness.files.errors import EnvironmentUnmet  # noqa: E402
from attnbench.harness.fleet import ray_demand, ray_devices  # noqa: E402
from attnbench.harness.fleet.ray_actor import RayActor, lost_by, start_actor  # noqa: E402
from attnbench.harness.fleet.ray_devices import RayFleet  # noqa: E402
from attnbench.harness.fleet.ray_seats import RESOURCE, Seat, Wish  # noqa: E402
from attnbench.harness.fleet.remote import NodeWanted, Ready, Remark  # noqa: E402
from attnbench.harness.process.fingerprint import fingerprint  # noqa: E402
from tests.fakes.fleet import opened  # noqa: E402
from tests.harness.fleet.test_ray_seats import node  # noqa: E402


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


# ---- a cluster of a test -------------------------------------------------------------------------

NEVER = object()
HERE = {"kind": "EPYC", "fingerprint": fingerprint(), "memory_monitor": False}


class Reference:
    """What it refers to is there at once, or never."""

    def __init__(self, found: Callable[[], Any]) -> None:
        self.found = found

    def there(self) -> bool:
        return self.found() is not NEVER


class Beside(RayActor):
    """Sees and opens what a test says: facts, a reason, an error of Ray's, or nothing ever."""

    def __init__(self, look: Any, opens: Any) -> None:
        self.looks, self.opens = look, opens

    def look(self, device: str) -> Any:
        if isinstance(self.looks, Exception):
            raise self.looks
        return self.looks

    def open(self, *_: object) -> Any:
        return self.opens

    def call(self, *_: object) -> None: ...


class Handle:
    """Of an actor, as Ray has it: every method has `remote`."""

    def __init__(self, beside: Beside) -> None:
        self.beside = beside

    def __getattr__(self, method: str) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *given: Reference(lambda: self._answer(method, given)))

    def _answer(self, method: str, given: tuple) -> Any:
        if self.beside.looks is NEVER:
            return NEVER
        known = [one.found() if isinstance(one, Reference) else one for one in given]
        return getattr(self.beside, method)(*known)


class Cluster:
    """`nodes`: as Ray lists them. `hosts`: what is beside the device of each. `asked`: bundles."""

    def __init__(self) -> None:
        self.nodes: list[dict] = []
        self.hosts: dict[str, Beside] = {}
        self.now_s = 0.0
        self.started: list[str] = []
        self.killed: list[Any] = []
        self.asked: list[list[dict]] = []
        self.said: list[str] = []
        self.autoscales = lambda: None

    def add(self, name: str, look: Any = None, opens: Any = None) -> None:
        host = {**HERE, "host": name}
        self.nodes.append(node(name, CPU=4.0, **{RESOURCE: 1.0}))
        self.hosts[name] = Beside(look or host, opens or opened(len(self.hosts)))

    def fleet(self, **wish: Any) -> RayFleet:
        wanted = NodeWanted(device="cpu", settings={}, wait=bool(wish.get("waits")))
        return RayFleet(wanted, Wish(**wish), lambda: None, self.said.append)

    def start_actor(self, seat: Seat, name: str) -> Handle:
        self.started.append(name)
        return Handle(self.hosts[seat.node_id])

    def wait(self, waiting: list, *, num_returns: int, timeout: float, **_: Any) -> tuple:
        ready = [one for one in waiting if self._is_there(one)][:num_returns]
        if len(ready) < num_returns:
            self.sleep(timeout)
        return ready, [one for one in waiting if one not in ready]

    def _is_there(self, one: Reference) -> bool:
        try:
            return one.there()
        except RayError:
            return True

    def get(self, one: Any, timeout: float = 0) -> Any:
        if isinstance(one, list):
            return [each.found() for each in one]
        if (found := one.found()) is NEVER:
            raise GetTimeoutError
        return found

    def sleep(self, seconds: float) -> None:
        self.now_s += max(seconds, 0.01)

    def placement_group(self, bundles: list[dict]) -> SimpleNamespace:
        self.asked.append(bundles)
        self.autoscales()
        return SimpleNamespace(ready=lambda: Reference(lambda: NEVER))


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    found = Cluster()
    for name, fake in {
        "nodes": lambda: found.nodes,
        "put": lambda given: Reference(lambda: given),
        "wait": found.wait,
        "get": found.get,
        "kill": found.killed.append,
    }.items():
        monkeypatch.setattr(ray, name, fake)
    clock = SimpleNamespace(monotonic=lambda: found.now_s, sleep=found.sleep)
    monkeypatch.setattr(ray_devices, "time", clock)
    monkeypatch.setattr(ray_devices, "start_actor", found.start_actor)
    monkeypatch.setattr(ray_demand, "placement_group", found.placement_group)
    monkeypatch.setattr(ray_demand, "remove_placement_group", lambda _: None)
    return found


def heard(made: RayFleet, times: int = 4) -> list:
    return [one for _ in range(times) for one in made.messages(0.0)]


# ---- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("look", "opens", "why"),
    [
        (NodeDiedError("node has died"), None, "its Ray node died"),
        ({**HERE, "host": "b", "fingerprint": {"attnbench": "0.1"}}, None, "b has attnbench '0.1'"),
        (None, "another run uses the device", "another run uses the device"),
        (NEVER, None, "no answer within 11 s: does other work hold its CPUs or GPU?"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_a_line_that_names_its_host(
    cluster: Cluster, look: Any, opens: Any, why: str
) -> None:
    cluster.add("a")
    cluster.add("b", look, opens)
    cluster.add("c")
    made = cluster.fleet()
    made.open()
    assert sorted(made.opened) == [0, 2]
    (remark,) = made.remarks
    assert remark.startswith("left out: b: ")
    assert why in remark
    assert "\n" not in remark


def test_a_run_begins_as_soon_as_the_wanted_number_has_answered(cluster: Cluster) -> None:
    cluster.add("a", NEVER)
    cluster.add("b")
    cluster.add("c", opens="another run uses the device")
    cluster.add("d")
    made = cluster.fleet(devices=2)
    made.open()
    assert sorted(made.opened) == [1, 3]
    assert cluster.now_s < ray_devices.LATE_S
    assert len(cluster.killed) == 2, "what is not used is given back"
    assert cluster.asked == []


def test_a_device_that_was_busy_is_used_as_soon_as_it_answers(cluster: Cluster) -> None:
    cluster.add("a")
    cluster.add("b", NEVER)
    made = cluster.fleet()
    made.open()
    assert heard(made) == []
    assert not made.is_growing, "nobody waits for it"
    cluster.hosts["b"].looks = {**HERE, "host": "b"}
    assert heard(made) == [(1, Ready(opened(1)))]


@pytest.mark.parametrize(
    ("wish", "begin"),
    [
        ({}, "no device of the cluster can be used (a: its Ray node died; b: no answer within 60"),
        ({"devices": 1}, "--devices 1: no device of the cluster can be used (a: its Ray node died"),
    ],
)
def test_without_an_answer_the_command_ends_with_one_line(cluster, wish: dict, begin: str) -> None:
    cluster.add("a", NodeDiedError("node has died"))
    cluster.add("b", NEVER)
    with pytest.raises(EnvironmentUnmet) as refusal:
        cluster.fleet(**wish).open()
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(begin)
    assert line.endswith("free or start more, or wait for them with --wait")


# ---- autoscaling ---------------------------------------------------------------------------------


def test_devices_that_are_not_there_are_asked_of_the_cluster(cluster: Cluster) -> None:
    cluster.add("a")
    cluster.autoscales = lambda: cluster.add(f"n{len(cluster.nodes)}")
    made = cluster.fleet(devices=3)
    made.open()
    assert len(made.opened) == 3
    assert cluster.asked == [[{"CPU": 4, RESOURCE: 1}]] * 2
    assert cluster.said == [
        f"asked the cluster for 2 more, each with 4 CPU, 1 {RESOURCE}; waiting for nodes"
    ]


def test_a_cluster_without_any_device_is_asked_for_one_only_if_the_user_waits(
    cluster: Cluster,
) -> None:
    with pytest.raises(EnvironmentUnmet, match=r"has the resource .* give --wait"):
        cluster.fleet().open()
    assert cluster.asked == []
    cluster.autoscales = lambda: cluster.add("a")
    made = cluster.fleet(waits=True)
    made.open()
    assert len(made.opened) == 1
    assert cluster.asked == [[{"CPU": 1, RESOURCE: 1}]]


def test_what_no_autoscaler_starts_is_too_few_after_a_minute(cluster: Cluster) -> None:
    cluster.add("a")
    with pytest.raises(EnvironmentUnmet, match="--devices 2: 1 of the cluster's devices can be"):
        cluster.fleet(devices=2).open()
    assert ray_devices.PLACED_S <= cluster.now_s < ray_devices.PLACED_S + 2


# ---- nodes that join -----------------------------------------------------------------------------


@pytest.fixture
def begun(cluster: Cluster, monkeypatch) -> RayFleet:
    """A run on one device."""
    monkeypatch.setattr(ray_devices, "LOOK_EVERY_S", 0.0)
    cluster.add("a")
    made = cluster.fleet()
    made.open()
    cluster.sleep(ray_devices.JOIN_EVERY_S)
    return made


def test_a_node_that_joins_is_opened_once_and_configured(cluster: Cluster, begun: RayFleet) -> None:
    assert heard(begun) == []
    begun.configure("config", {})  # type: ignore[arg-type]
    cluster.add("b")
    cluster.nodes += [node("head", CPU=8.0), node("dead", alive=False, **{RESOURCE: 1.0})]
    begun._look_for_more()
    assert begun.is_growing
    assert heard(begun) == [(1, Ready(opened(1)))]
    assert not begun.is_growing
    assert heard(begun) == [], "once"
    assert cluster.started == ["attnbench 1 on a", "attnbench 2 on b"]


@pytest.mark.parametrize(
    ("looked", "opens", "why"),
    [
        ({**HERE, "host": "b", "kind": "Xeon"}, None, "it is Xeon, and the run measures on EPYC"),
        ({**HERE, "host": "b", "fingerprint": {"attnbench": "0.1"}}, None, "b has attnbench '0.1'"),
        (None, "another run uses the device", "another run uses the device"),
    ],
)
def test_a_node_that_cannot_measure_for_this_run_is_one_remark(
    cluster: Cluster, begun: RayFleet, looked, opens, why
) -> None:
    cluster.add("b", looked, opens)
    ((number, remark),) = heard(begun)
    assert number == 1
    assert isinstance(remark, Remark)
    assert remark.text.startswith("b is not used: ")
    assert why in remark.text
    assert "\n" not in remark.text
    assert len(cluster.killed) == 1
    assert heard(begun) == [], "it is not tried again"
