"""A Ray cluster: connect to it, or start one for a run; open its devices."""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RuntimeEnvSetupError

from ..files.errors import BadInput, EnvironmentUnmet, first_line, option
from ..files.printable import visible
from .ray_actor import MEMORY_MONITOR
from .ray_devices import RayFleet
from .ray_seats import RESOURCE, Wish
from .remote import NodeWanted

REACHED_S = 10.0
LOCAL = "local"
START = f"start one with: ray start --head, or for this run with {option('address', LOCAL)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """`address`: auto, local or HOST:PORT. `wish`: which of its devices."""

    address: str = "auto"
    wish: Wish

    @contextmanager
    def open(
        self,
        wanted: NodeWanted,
        files: Sequence[Path],
        check: Callable[[], None],
        say: Callable[[str], None],
    ) -> Iterator[RayFleet]:
        """As elsewhere.py says. Raises Refusal."""
        with connected(self.address, files):
            fleet = RayFleet(wanted, self.wish, check, say)
            try:
                fleet.open()
                yield fleet
            finally:
                fleet.close()


@contextmanager
def connected(address: str, files: Sequence[Path] = ()) -> Iterator[None]:
    """Be a driver of the cluster, whose processes can import `files`. Raises Refusal.

    Ray prints what it hears of the cluster to stdout, where our results are, from a thread of its
    own and when it ends.
    """
    if address.startswith("ray://"):
        raise BadInput(
            f"{option('address', visible(address))}: a Ray client, which cannot stream results; run"
            " attnbench on a node of the cluster with --address auto, as `ray job submit` does"
        )
    if address not in ("auto", LOCAL):
        _refuse_unreachable(address)
    # Listeners write to the stdout that was there when they were made.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        _connect(address, files)
        try:
            yield
        finally:
            ray.shutdown()  # and what it started for --address local


def _refuse_unreachable(address: str) -> None:
    """Raises BadInput, EnvironmentUnmet; Ray would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise BadInput(
            f"{option('address', visible(address))}: wanted auto, {LOCAL} or HOST:PORT, such as"
            " head:6379"
        )
    try:
        socket.create_connection((host, int(port)), timeout=REACHED_S).close()
    except OSError as error:
        why = visible(error.strerror or str(error))
        raise EnvironmentUnmet(
            f"{option('address', visible(address))}: nothing answers there ({why}); {START}"
        ) from None


def _connect(address: str, files: Sequence[Path]) -> None:
    settings: dict[str, Any] = {}
    if address == LOCAL:
        # Its processes inherit these: running out of memory is a result, and nobody hears of us.
        os.environ.setdefault(MEMORY_MONITOR, "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings["resources"] = {RESOURCE: 1}
    if files:
        settings["runtime_env"] = {"py_modules": [str(path) for path in files]}
    try:
        ray.init(
            address=address,
            log_to_driver=False,  # what workers print is in the run's logs
            logging_level=logging.ERROR,
            include_dashboard=False,
            **settings,
        )
    except ConnectionError as error:
        raise EnvironmentUnmet(
            f"{option('address', visible(address))}: no Ray cluster there"
            f" ({visible(first_line(error))});"
            f" {START}"
        ) from None
    except RuntimeEnvSetupError as error:
        raise BadInput(
            f"{option('on', 'ray')}: {', '.join(path.name for path in files)}: cannot be sent"
            f" ({visible(first_line(error))}); wanted files of backends that fit into Ray's limit"
        ) from None
    except (RuntimeError, ValueError, TimeoutError) as error:
        raise EnvironmentUnmet(
            f"{option('address', visible(address))}: cannot be used"
            f" ({visible(first_line(error))}); wanted a"
            f" cluster that this machine is a node of, with the same Ray and Python; {START}"
        ) from None
