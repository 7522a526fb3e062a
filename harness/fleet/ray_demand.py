"""Devices that a Ray cluster does not have yet, asked of its autoscaler."""

from collections.abc import Callable, Iterable
from typing import Any

import ray
from ray.util import placement_group, remove_placement_group

from .ray_seats import Seat


class Demand:
    """Is withdrawn at the end. What the cluster grants is given back at once: it only makes nodes
    start, and a process that is bound to such a node takes the device.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._asked = 0
        self._groups: dict[Any, Any] = {}  # by the reference that is there once it is granted

    def __enter__(self) -> "Demand":
        return self

    def __exit__(self, *_: object) -> None:
        self._withdraw([*self._groups])

    def ask(self, missing: int, device: str, seats: Iterable[Seat]) -> None:
        """Ask for so many in all, each as large as the largest of `seats`; say so once."""
        if groups := [*self._groups]:
            self._withdraw(ray.wait(groups, num_returns=len(groups), timeout=0)[0])
        if missing <= self._asked:
            return
        usual = Seat(node_id="", host="", gpus=int(device == "cuda"), cpus=1)
        bundle = max(seats, key=lambda seat: seat.cpus, default=usual).bundle
        for _ in range(missing - self._asked):
            group = placement_group([bundle])
            self._groups[group.ready()] = group
        self._asked = missing
        wanted = ", ".join(f"{count:g} {name}" for name, count in bundle.items())
        self._say(f"asked the cluster for {missing} more, each with {wanted}; waiting for nodes")

    def _withdraw(self, granted: Iterable[Any]) -> None:
        for one in granted:
            remove_placement_group(self._groups.pop(one))
