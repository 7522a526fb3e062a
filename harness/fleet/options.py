"""`attnbench run --on ray`: its options, and the cluster that they name."""

import os
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from ..cli.options import HOW, option
from ..files.errors import BadInput, EnvironmentUnmet

if TYPE_CHECKING:
    from .remote import Cluster


SHARED_CORES = "ATTNBENCH_TEST_SHARED_CORES"
"""Only for tests of what is around measuring: a host may be several devices."""


class Engine(StrEnum):
    RAY = "ray"


On = Annotated[
    Engine | None,
    option(
        "--on ray",
        "Measure on the devices of a Ray cluster, several at a time; this machine is one of"
        " its nodes.",
        HOW,
    ),
]
Address = Annotated[
    str | None,
    option(
        "--address auto|HOST:PORT",
        "With --on ray: the cluster; that of this machine if not given.",
        HOW,
    ),
]
Devices = Annotated[
    int | None,
    option(
        "--devices COUNT",
        "With --on ray: how many to measure on, all if not given. With --dry-run: how long a"
        " run on so many takes.",
        HOW,
        min=1,
        max=100_000,
    ),
]
DeviceKind = Annotated[
    str | None,
    option(
        "--device-kind NAME",
        "With --on ray: devices whose name has this, such as H100; a run measures one kind.",
        HOW,
    ),
]


def refuse_alone(
    on: str | None,
    address: str | None,
    devices: int | None,
    device_kind: str | None,
    *,
    dry_run: bool,
) -> None:
    """Raises BadInput for options without the one that they belong to."""
    if on is None and (address is not None or device_kind is not None):
        raise BadInput("--address and --device-kind belong to --on ray")
    if on is None and devices is not None and not dry_run:
        raise BadInput(
            "--devices belongs to --on ray and to --dry-run; to measure a part, give --shard 1/8"
        )


def cluster_of(address: str | None, devices: int | None, device_kind: str | None) -> "Cluster":
    """Raises EnvironmentUnmet without Ray; nothing of it is imported before that."""
    if find_spec("ray") is None:
        raise EnvironmentUnmet(
            "--on ray: Ray is not installed; wanted 2.50 or newer: pip install 'attnbench[ray]'"
        )
    from .ray_cluster import RayCluster

    return RayCluster(
        address=address or "auto",
        devices=devices,
        device_kind=device_kind,
        shared_cores=bool(os.environ.get(SHARED_CORES)),
    )
