"""A Ray cluster that runs already: connect to it, choose devices, open them."""

import logging
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import ray

from ..files.errors import BadInput, EnvironmentUnmet, first_line
from ..files.printable import visible
from .ray_devices import RayFleet
from .ray_seats import chosen, refuse_other_code, seats_of
from .remote import NodeWanted

REACHED_S = 10.0
START = "start one with: ray start --head"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """`devices`: how many to measure on; None for all of one kind."""

    address: str = "auto"
    devices: int | None = None
    device_kind: str | None = None

    @contextmanager
    def open(self, wanted: NodeWanted, check: Callable[[], None]) -> Iterator[RayFleet]:
        """As run/remote.py says. Raises Refusal."""
        with connected(self.address):
            nodes = ray.nodes()
            seats = seats_of(nodes, wanted.device)
            # nothing is left to Ray's hiding of GPUs
            wanted = replace(wanted, device="cuda" if seats[0].gpus else "cpu")
            fleet = RayFleet(wanted, check, [node["NodeID"] for node in nodes])
            try:
                looked = fleet.look(seats)
                refuse_other_code(looked)
                fleet.open(chosen(looked, self.devices, self.device_kind), self.devices)
                yield fleet
            finally:
                fleet.close()


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Be a driver of the cluster. Raises Refusal.

    Ray prints what it hears of the cluster to stdout, where our results are, from a thread of its
    own and when it ends.
    """
    if address.startswith("ray://"):
        raise BadInput(
            f"--address {visible(address)}: a Ray client, which cannot stream results; run"
            " attnbench on a node of the cluster with --address auto, as `ray job submit` does"
        )
    if address != "auto":
        _refuse_unreachable(address)
    # Listeners write to the stdout that was there when they were made.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        _connect(address)
        try:
            yield
        finally:
            ray.shutdown()


def _refuse_unreachable(address: str) -> None:
    """Raises BadInput, EnvironmentUnmet; Ray would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise BadInput(f"--address {visible(address)}: wanted auto or HOST:PORT, such as head:6379")
    try:
        socket.create_connection((host, int(port)), timeout=REACHED_S).close()
    except OSError as error:
        why = visible(error.strerror or str(error))
        raise EnvironmentUnmet(
            f"--address {visible(address)}: nothing answers there ({why}); {START}"
        ) from None


def _connect(address: str) -> None:
    try:
        ray.init(
            address=address,
            log_to_driver=False,  # what workers print is in the run's logs
            logging_level=logging.ERROR,
            include_dashboard=False,
        )
    except ConnectionError as error:
        raise EnvironmentUnmet(
            f"--address {visible(address)}: no Ray cluster there ({visible(first_line(error))});"
            f" {START}"
        ) from None
    except (RuntimeError, ValueError, TimeoutError) as error:
        raise EnvironmentUnmet(
            f"--address {visible(address)}: cannot be used ({visible(first_line(error))}); wanted a"
            f" cluster that this machine is a node of, with the same Ray and Python; {START}"
        ) from None
