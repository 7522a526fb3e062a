"""What the fleet pack adds to the command line: `attnbench merge`, and `attnbench run --on ray`."""

from dataclasses import replace
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from ..cli.options import DEVICES, option
from ..cli.verbs import FILES
from ..files.errors import BadInput, EnvironmentUnmet
from ..run.packs import Pack, PackVerb
from .merge_verb import merge

if TYPE_CHECKING:
    from ..run.engine import RunOptions


class Engine(StrEnum):
    RAY = "ray"


On = Annotated[
    Engine | None,
    option(
        "--on ray",
        "Measure on the devices of a Ray cluster, several at a time; this machine is one of"
        " its nodes.",
        DEVICES,
    ),
]
Address = Annotated[
    str | None,
    option(
        "--address auto|local|HOST:PORT",
        "With --on ray: the cluster; that of this machine if not given. local: one that is started"
        " for this run, on this machine.",
        DEVICES,
    ),
]
Devices = Annotated[
    int | None,
    option(
        "--devices COUNT",
        "With --on ray: how many to measure on, all if not given.",
        DEVICES,
        min=1,
        max=100_000,
    ),
]
DeviceKind = Annotated[
    str | None,
    option(
        "--device-kind NAME",
        "With --on ray: devices whose name has this, such as H100; a run measures one kind.",
        DEVICES,
    ),
]


def opted(
    options: "RunOptions",
    *,
    dry_run: bool,
    on: str | None,
    address: str | None,
    devices: int | None,
    device_kind: str | None,
) -> "RunOptions":
    """With the cluster whose devices measure. Raises BadInput for options without the one that they
    belong to, EnvironmentUnmet without Ray; nothing of it is imported before that.
    """
    if on is None and (address is not None or device_kind is not None):
        raise BadInput("--address and --device-kind belong to --on ray")
    if on is None and devices is not None:
        raise BadInput("--devices belongs to --on ray; to measure a part, give --shard 1/8")
    if on is None or dry_run:
        return options
    if find_spec("ray") is None:
        raise EnvironmentUnmet(
            "--on ray: Ray is not installed; wanted 2.50 or newer: pip install 'attnbench[ray]'"
        )
    from .elsewhere import Elsewhere
    from .ray_cluster import RayCluster
    from .ray_seats import Wish

    wish = Wish(devices=devices, kind=device_kind, waits=options.wait)
    cluster = RayCluster(address=address or "auto", wish=wish)
    return replace(options, engine=Elsewhere(cluster.open))


PACK = Pack(
    verbs=(
        PackVerb(
            name="merge",
            command=merge,
            panel=FILES,
            examples=(
                "attnbench merge shard-1 shard-2 shard-3",
                "attnbench merge shards/*/* -o whole",
            ),
        ),
    ),
    run_options={"on": On, "address": Address, "devices": Devices, "device_kind": DeviceKind},
    opted=opted,
)
