"""A Ray cluster as the engine of a run: reached, or started for it, and its devices opened."""

import logging
import os
import signal
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RuntimeEnvSetupError

from ... import __version__
from ...impls import is_ours
from ...impls.discovery.registry import BUILTIN_FOLDER, find
from ..files.errors import BadInput, EnvironmentUnmet, Stopped, first_line, option
from ..files.printable import visible
from ..process.signals import Signals
from ..process.worker_process import Interrupted
from ..run.engine import RunOptions
from .ray_actor import DeviceWanted, settings_here
from .ray_devices import RayDevices
from .ray_seats import MEMORY_MONITOR

REACHED_S = 10.0
LOCAL = "local"
START = f"start one with: ray start --head, or for this run with {option('address', LOCAL)}"


@dataclass(frozen=True, slots=True)
class OnRay:
    """An engine. `address`: auto, local or HOST:PORT. `devices`: how many, None for all. `kind`: a
    part of their name.
    """

    address: str
    devices: int | None
    kind: str

    @contextmanager
    def open(
        self,
        device: str,
        backends: Iterable[str],
        options: RunOptions,
    ) -> Iterator[RayDevices]:
        """With signals under control. Raises Refusal."""
        allow_import = bool(options.allow_import)
        folders = backend_folders(backends)
        sent: dict[str, Any] = {"py_modules": list(map(str, folders))} if folders else {}
        if allow_import and not all(map(is_ours, backends)):
            sent |= {"working_dir": str(Path.cwd()), "excludes": ["/results"]}
        with Signals(embedded=options.embedded) as signals, connected(self.address, sent):
            has_gpus = "GPU" in ray.cluster_resources()
            wanted = DeviceWanted(
                device=("cuda" if has_gpus else "cpu") if device == "auto" else device,
                kind=self.kind,
                version=__version__,
                settings=settings_here(),
                folders=[folder.name for folder in folders],
                allow_import=allow_import,
                wait=options.wait,
            )
            with closing(RayDevices(wanted, self.devices, signals, options.listener)) as found:
                try:
                    found.open()
                except Interrupted:  # a run that has begun takes it itself
                    raise Stopped(signals.received or signal.SIGINT) from None
                yield found


def backend_folders(backends: Iterable[str]) -> list[Path]:
    """The folders of ATTNBENCH_BACKENDS that these backends are in."""
    found: dict[Path, None] = {}
    for name in backends:
        with suppress(ValueError):  # there is no such backend: others say so
            origin = find(name).origin
            if isinstance(origin, Path) and origin.parent != BUILTIN_FOLDER:
                found[origin.parent.resolve()] = None
    return list(found)


# ---- the cluster ---------------------------------------------------------------------------------


@contextmanager
def connected(address: str, sent: Mapping[str, Any]) -> Iterator[None]:
    """Be a driver of the cluster, whose processes have what is `sent`, a runtime_env. Raises
    Refusal.

    Ray prints what it hears of the cluster to stdout, where our results are, from a thread of its
    own and when it ends.
    """
    if address not in ("auto", LOCAL):
        _refuse_unreachable(address)
    # Listeners write to the stdout that was there when they were made.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        _connect(address, sent)
        try:
            yield
        finally:
            ray.shutdown()  # and what it started for --address local


def _refuse_unreachable(address: str) -> None:
    """Raises BadInput, EnvironmentUnmet; Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    where = option("address", visible(address))
    if not host or "/" in host or not port.isdecimal():
        raise BadInput(f"{where}: wanted auto, {LOCAL} or HOST:PORT, such as head:6379")
    try:
        socket.create_connection((host, int(port)), timeout=REACHED_S).close()
    except (OSError, OverflowError) as error:
        why = visible(str(error))
        raise EnvironmentUnmet(f"{where}: nothing answers there ({why}); {START}") from None


def _connect(address: str, sent: Mapping[str, Any]) -> None:
    if address == LOCAL:
        # Its processes inherit these: running out of memory is a result, and nobody hears of us.
        os.environ.setdefault(MEMORY_MONITOR, "0")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # as on this machine without Ray
    where = option("address", visible(address))
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False,
            runtime_env=dict(sent),
        )
    except RuntimeEnvSetupError as error:
        raise BadInput(
            f"{option('on', 'ray')}: files of your backends cannot be sent"
            f" ({visible(first_line(error))}); wanted folders that fit into Ray's limit"
        ) from None
    except (RayError, ConnectionError) as error:
        why = visible(first_line(error))
        if isinstance(error, RayError) or "Failed to connect" in why:
            raise EnvironmentUnmet(
                f"{where}: the cluster refuses the token or does not answer ({why}); Ray 2.60"
                " wants one by default: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or put the"
                " token into ~/.ray/auth_token"
            ) from None
        raise EnvironmentUnmet(f"{where}: no Ray cluster there ({why}); {START}") from None
    except Exception as error:  # noqa: BLE001 - Ray raises no narrower one if it does not start
        raise EnvironmentUnmet(
            f"{where}: cannot be used ({visible(first_line(error))}); wanted a cluster that this"
            f" machine is a node of, with the same Ray and Python; {START}"
        ) from None
