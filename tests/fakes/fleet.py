"""Ray with devices that measure nothing: they answer what a test says, and die when it wants."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ray.exceptions import ActorDiedError, RayError

from attnbench.harness.cases.case import Case
from attnbench.harness.fleet.ray_actor import DeviceWanted, Opened
from attnbench.harness.rows.record import Planned, Record, Status
from attnbench.harness.run.spec import RunSpec
from attnbench.harness.scenario.shards import Units

ENVIRONMENT = {
    "device_uuid": None,
    "device_name": None,
    "cpu": "fake",
    "torch": "2.13.0",
    "attnbench": "0",
    "device": "cpu",
    "allocator": {},
}


def row(one: Planned, host: str) -> Record:
    values: dict[str, Any] = {"device": "cpu", "attempt": 1, "host": host, "device_name": "fake"}
    if isinstance(one, Case):
        values |= {"block_ms": [[[1.0]]], "exactness": "exact", "spent_s": 1.0}
    return Record.of(one, Status.OK, "", values)


def died() -> RayError:
    return ActorDiedError()


class FakeRay:
    """In place of the module. `dies`: asked with the host and what it would measure next; an error
    in place of the row. `facts`: of a host, beside ENVIRONMENT; words if it cannot be opened.
    """

    def __init__(
        self,
        count: int,
        dies: Callable[[str, Planned], RayError | None] = lambda host, one: None,
        *,
        back: bool = True,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.hosts = [f"host{number}" for number in range(count)]
        self.dies, self.back, self.facts = dies, back, facts or {}
        self.started: list[tuple[str, Units]] = []
        self.opened: list[str] = []

    def row(self, one: Planned, host: str) -> Record:
        return row(one, host)

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "NodeID": f"{number:056x}",
                "Alive": True,
                "NodeManagerHostname": host,
                "Resources": {"CPU": 2.0},
            }
            for number, host in enumerate(self.hosts)
        ]

    def put(self, value: Any) -> Any:
        return value

    def kill(self, actor: Any) -> None: ...

    def remote(self, _: type) -> "FakeRay":
        return self

    def options(self, **_: Any) -> "Any":
        return FakeClass(self)

    def wait(self, refs: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return refs, []

    def get(self, ref: Any) -> Any:
        value = ref.value if isinstance(ref, Ref) else ref
        if isinstance(value, Exception):
            raise value
        return value


class Ref:
    def __init__(self, value: Any) -> None:
        self.value = value


class FakeClass:
    def __init__(self, ray: FakeRay) -> None:
        self.ray = ray

    def remote(self) -> "FakeActor":
        return FakeActor(self.ray)


class FakeActor:
    def __init__(self, ray: FakeRay) -> None:
        self.ray = ray
        self.open, self.measure = Method(self._open), Method(self._measure)

    def _open(self, wanted: DeviceWanted) -> Ref:
        ray, self.host = self.ray, wanted.host
        facts = ray.facts.get(self.host, {})
        if self.host in ray.opened and not ray.back:
            facts = "its Ray node died"
        ray.opened.append(self.host)
        if isinstance(facts, str):
            return Ref(facts)
        where = {"host": self.host, "device_uuid": None, "device_name": "fake"}
        environment = {**ENVIRONMENT, **facts}
        return Ref(Opened(where=where, environment=environment, free_bytes=1 << 30))

    def _measure(
        self, spec: RunSpec, attempts: Any, work: Units, wall_share: float, every: bool
    ) -> Iterator[Ref]:
        self.ray.started.append((self.host, work))
        return self._said(work)

    def _said(self, work: Units) -> Iterator[Ref]:
        for one in work.planned:
            yield Ref([(one.id, "latency")])
            if (error := self.ray.dies(self.host, one)) is not None:
                yield Ref(error)
                return
            yield Ref([self.ray.row(one, self.host)])


class Method:
    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call
