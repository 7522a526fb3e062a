"""Where the devices of a cluster are, and why one was lost, by what Ray says."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from ray.exceptions import OutOfMemoryError, RayActorError, RayError

from ..files.printable import visible

MEMORY_MONITOR = "RAY_memory_monitor_refresh_ms"


class RaySeat(NamedTuple):
    """Where a device is. `resources`: as options of an actor."""

    node_id: str
    host: str
    resources: Mapping[str, int]


def seats_of(nodes: Sequence[Mapping[str, Any]], device: str) -> list[RaySeat]:
    """The devices that ray.nodes() lists: of a host without a GPU, all its CPUs. Those of different
    hosts come before the next of one.
    """
    alive = [node for node in nodes if node["Alive"]]
    names = Counter(node["NodeManagerHostname"] for node in alive)
    by_node: list[list[RaySeat]] = []
    for node in alive:
        has, name, node_id = node["Resources"], node["NodeManagerHostname"], node["NodeID"]
        count = int(has.get("GPU", 0) if device == "cuda" else has.get("CPU", 0) >= 1)
        resources = {"num_cpus": int(has.get("CPU", 0) // max(1, count))}
        resources |= {"num_gpus": 1} if device == "cuda" else {}
        host = visible(str(name)) + (f" (node {node_id[-8:]})" if names[name] > 1 else "")
        by_node.append([RaySeat(node_id, host, resources)] * count)
    return [seat for seat in chain.from_iterable(zip_longest(*by_node)) if seat]


def reason_of(error: RayError) -> str:
    """In a few words: Ray's own texts have many lines, and name memory as a possible cause of any
    death; its type of error is sure.
    """
    text = str(error).strip()
    if isinstance(error, OutOfMemoryError):
        return (
            "Ray's memory monitor killed its process, because the host's memory was nearly full;"
            f" {MEMORY_MONITOR}=0 before ray start turns it off"
        )
    if "ModuleNotFoundError" in text or "ImportError" in text:
        return "attnbench cannot be imported there; install it in the Python that Ray uses"
    if isinstance(error, RayActorError):
        words = text.lower().replace("node id", "").replace("node ip", "")
        is_node = "node" in words and "worker process has died" not in words
        return "its Ray node died" if is_node else "its Ray worker process died"
    return visible(text.rpartition("\n")[2])[:200]
