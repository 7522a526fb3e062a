"""Where in a Ray cluster a device is: on which node, with which of its resources."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..files.errors import BadInput, EnvironmentUnmet, option
from ..files.printable import visible
from .fingerprint import difference

RESOURCE = "attnbench_host"
"""What a host without a GPU declares, once: two measurements must never share its cores."""
DECLARE = f"ray start --resources='{{\"{RESOURCE}\": 1}}'"
SHOWN = 3  # reasons of one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A device of a node. `host`: its name, with more if another node has the same. `cpus`: that
    nobody else gets from Ray while it is measured on.
    """

    node_id: str
    host: str
    gpus: int
    cpus: int

    @property
    def bundle(self) -> dict[str, float]:
        """What Ray is asked for, also where no such node is yet."""
        cpus = {"CPU": self.cpus} if self.cpus else {}
        return {**cpus, **({"GPU": self.gpus} if self.gpus else {RESOURCE: 1})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What is seen beside a device before it is locked. `kind`: its name."""

    number: int
    kind: str
    memory_monitor: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`devices`: how many to measure on; None for all. `kind`: a part of their name; None for the
    only one. `waits`: for devices that are not there, or not free.
    """

    devices: int | None = None
    kind: str | None = None
    waits: bool = False

    @property
    def fewest(self) -> int:
        return self.devices or 1

    def matching(self, looked: Sequence[Looked]) -> dict[str, list[Looked]]:
        """By kind, those that may be meant."""
        kinds: dict[str, list[Looked]] = {}
        for one in looked:
            kinds.setdefault(one.kind, []).append(one)
        if self.kind in kinds:
            return {self.kind: kinds[self.kind]}
        part = (self.kind or "").lower()
        return {name: ones for name, ones in kinds.items() if part in name.lower()}

    def missing(self, looked: Sequence[Looked], others: int = 0) -> int:
        """How many devices there would have to be beside those that answered and `others`."""
        most = max(map(len, self.matching(looked).values()), default=0)
        return max(0, self.fewest - most - others)

    def chosen(self, looked: Sequence[Looked], left_out: Sequence[str]) -> list[Looked]:
        """Devices of one kind, at least as many as are wished for.

        `left_out`: the others, each with its reason. Raises BadInput, EnvironmentUnmet.
        """
        if not looked:
            raise EnvironmentUnmet(self.too_few(0, left_out))
        found = self.matching(looked)
        counts = Counter(one.kind for one in looked)
        there_are = ", ".join(f"{name} ({count})" for name, count in counts.items())
        if not found:
            raise EnvironmentUnmet(
                f"{option('device_kind', self.kind)}: not in the cluster; there are: {there_are}"
            )
        if len(found) > 1:
            raise BadInput(
                f"{option('device_kind')}: {'not given' if self.kind is None else 'not clear'},"
                " and the"
                f" cluster has devices of {len(found)} kinds; a run measures on one: choose of"
                f" {there_are}"
            )
        (ones,) = found.values()
        if len(ones) < self.fewest:
            raise EnvironmentUnmet(self.too_few(len(ones), left_out))
        return ones

    def too_few(self, count: int, left_out: Sequence[str]) -> str:
        """Why a run cannot begin on `count` devices, and what to do."""
        reasons = "; ".join(left_out[:SHOWN])
        if (more := len(left_out) - SHOWN) > 0:
            reasons += f"; and {more} more"
        asked = f"{option('devices', self.devices)}: " if self.devices else ""
        has = "no device of the cluster" if not count else f"{count} of the cluster's devices"
        fewer = ", ask for fewer" if count else ""
        return (
            f"{asked}{has} can be used{f' ({reasons})' if reasons else ''}; free or start"
            f" more{fewer}, or wait for them with {option('wait', True)}"
        )


def device_of(nodes: Sequence[Mapping[str, Any]], device: str) -> str:
    """cpu or cuda; auto takes GPUs if there are any."""
    has_gpus = any(node["Alive"] and node["Resources"].get("GPU") for node in nodes)
    return device if device != "auto" else "cuda" if has_gpus else "cpu"


def seats_of(
    nodes: Sequence[Mapping[str, Any]], device: str, known: Container[str] = ()
) -> list[Seat]:
    """The devices that ray.nodes() lists, but for `known` nodes; those of different hosts before
    the next of one. `device`: cpu or cuda. Raises EnvironmentUnmet.
    """
    alive = [node for node in nodes if node["Alive"]]
    named = Counter(node["NodeManagerHostname"] for node in alive)
    placed = Counter((node["NodeManagerHostname"], node["NodeManagerAddress"]) for node in alive)
    found: list[tuple[int, Seat]] = []
    for node in alive:
        if (node_id := node["NodeID"]) in known:
            continue
        resources, host = node["Resources"], visible(str(node["NodeManagerHostname"]))
        count = resources.get("GPU" if device == "cuda" else RESOURCE, 0.0)
        if named[node["NodeManagerHostname"]] > 1:  # containers may be called alike
            address = node["NodeManagerAddress"]
            is_clear = placed[node["NodeManagerHostname"], address] == 1
            host = f"{host} ({visible(str(address)) if is_clear else f'node {node_id[-8:]}'})"
        if device == "cuda" and count != int(count):
            raise EnvironmentUnmet(
                f"{host} offers {count:g} GPUs; wanted whole ones, because what else runs on a GPU"
                " disturbs what is measured: ray start --num-gpus COUNT"
            )
        # All of a host without a GPU; else its share, for what launches kernels.
        cpus = int(resources.get("CPU", 0.0) // count) if count else 0
        seat = Seat(node_id=node_id, host=host, gpus=int(device == "cuda"), cpus=cpus)
        found += [(place, seat) for place in range(int(count))]
    return [seat for _, seat in sorted(found, key=lambda one: one[0])]


def no_seat(nodes: Sequence[Mapping[str, Any]], device: str) -> str:
    """Why there is nothing to measure on, and what to do."""
    alive = sum(node["Alive"] for node in nodes)
    starts = f"; to have an autoscaler start one, give {option('wait', True)}"
    if device == "cuda":
        none = f"no cuda device: the cluster's {alive} nodes have none"
        return f"{none}; run with {option('device', 'cpu')}{starts}"
    return (
        f"none of the cluster's {alive} nodes has the resource {RESOURCE}, which marks a host to"
        f" measure on; give it to each such host: {DECLARE}{starts}, and"
        f" {option('device', 'cuda')} for GPUs"
    )


def other_code(host: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Why a host cannot measure for a driver whose code is `ours`; "" if it is the same."""
    found = difference(theirs, ours)
    return found and (
        f"{host} {found}; wanted attnbench {ours['attnbench']} as this one is, so that the same"
        " code measures everywhere: install it there"
    )
