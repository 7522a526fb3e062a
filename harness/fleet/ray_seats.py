"""Where in a Ray cluster a device is: on which node, with which of its resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..files.errors import BadInput, EnvironmentUnmet
from ..files.printable import visible
from ..process.fingerprint import fingerprint
from ..process.interpreter import difference

RESOURCE = "attnbench_host"
"""What a host without a GPU declares, once: two measurements must never share its cores."""
DECLARE = f"ray start --resources='{{\"{RESOURCE}\": 1}}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A device of a node. `cpus`: that nobody else gets from Ray while it is measured on."""

    node_id: str
    host: str
    gpus: int
    cpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What is seen beside a device before it is locked. `kind`: its name."""

    number: int
    host: str
    kind: str
    fingerprint: Mapping[str, Any]
    memory_monitor: bool


def seats_of(nodes: Sequence[Mapping[str, Any]], device: str) -> list[Seat]:
    """The devices that ray.nodes() lists; those of different hosts before the next of one.

    `device`: cpu or cuda; auto takes GPUs if there are any. Raises EnvironmentUnmet.
    """
    alive = [node for node in nodes if node["Alive"]]
    gpus = {node["NodeID"]: node["Resources"].get("GPU", 0.0) for node in alive}
    on_gpu = device == "cuda" or (device == "auto" and any(gpus.values()))
    found: list[tuple[int, Seat]] = []
    for node in alive:
        resources = node["Resources"]
        count = resources.get("GPU" if on_gpu else RESOURCE, 0.0)
        host = visible(str(node["NodeManagerHostname"]))
        if on_gpu and count != int(count):
            raise EnvironmentUnmet(
                f"{host} offers {count:g} GPUs; wanted whole ones, because what else runs on a GPU"
                " disturbs what is measured: ray start --num-gpus COUNT"
            )
        # All of a host without a GPU; else its share, for what launches kernels.
        cpus = int(resources.get("CPU", 0.0) // count) if count else 0
        found += [
            (place, Seat(node_id=node["NodeID"], host=host, gpus=int(on_gpu), cpus=cpus))
            for place in range(int(count))
        ]
    if not found and on_gpu:
        raise EnvironmentUnmet(
            f"no cuda device: the cluster's {len(alive)} nodes have none; run with --device cpu"
        )
    if not found:
        raise EnvironmentUnmet(
            f"none of the cluster's {len(alive)} nodes has the resource {RESOURCE}, which marks a"
            f" host to measure on; give it to each such host: {DECLARE}"
        )
    return [seat for _, seat in sorted(found, key=lambda one: one[0])]


def chosen(looked: Sequence[Looked], count: int | None, kind: str | None) -> list[Looked]:
    """Devices of one kind. Raises BadInput, EnvironmentUnmet."""
    kinds: dict[str, list[Looked]] = {}
    for one in looked:
        kinds.setdefault(one.kind, []).append(one)
    there_are = ", ".join(f"{name} ({len(ones)})" for name, ones in kinds.items())
    matching = [name for name in kinds if (kind or "").lower() in name.lower()]
    exact = [name for name in kinds if name == kind]
    matching = exact or matching
    if not matching:
        raise EnvironmentUnmet(f"--device-kind {kind}: not in the cluster; there are: {there_are}")
    if len(matching) > 1:
        raise BadInput(
            f"--device-kind: {'not given' if kind is None else 'not clear'}, and the cluster has"
            f" devices of {len(matching)} kinds; a run measures on one: choose of {there_are}"
        )
    found = kinds[matching[0]]
    if count is not None and count > len(found):
        raise EnvironmentUnmet(
            f"--devices {count}: the cluster has {len(found)} of this kind; there are: {there_are}"
        )
    return found[:count]


def other_code(host: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Why a host cannot measure for a driver whose code is `ours`; "" if it is the same."""
    found = difference(dict(theirs), dict(ours))
    return found and (
        f"{host} {found}; wanted attnbench {ours['attnbench']} as this one is, so that the same"
        " code measures everywhere: install it there"
    )


def refuse_other_code(looked: Sequence[Looked]) -> None:
    """Raises EnvironmentUnmet unless every host has our attnbench."""
    for one in looked:
        if why := other_code(one.host, one.fingerprint, fingerprint()):
            raise EnvironmentUnmet(why)
