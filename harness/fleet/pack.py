"""What the fleet pack adds to the command line: `attnbench merge`, and `attnbench run --on ray`."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ..cli.verbs import MEASURE
from ..run.packs import Pack, PackVerb
from .merge_verb import merge
from .options import Address, DeviceKind, Devices, On, cluster_of, refuse_alone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from ..cases.expected_time import Forecast
    from ..cli.dry_run import DryRun
    from ..run.engine import RunOptions


def opted(
    options: "RunOptions",
    *,
    dry_run: bool,
    on: str | None,
    address: str | None,
    devices: int | None,
    device_kind: str | None,
) -> "RunOptions":
    """With the cluster whose devices measure. Raises BadInput, EnvironmentUnmet."""
    refuse_alone(on, address, devices, device_kind, dry_run=dry_run)
    if on is None or dry_run:
        return options
    cluster = cluster_of(address, devices, device_kind)
    from .elsewhere import Elsewhere

    return replace(options, engine=Elsewhere(cluster))


def foreseen(
    dry_run: "DryRun",
    forecast: "Forecast",
    root: "Path",
    *,
    devices: int | None,
    **_: object,
) -> "Iterator[RenderableType]":
    """How long the run takes on several devices, if a number of them is given."""
    from .fan_out import on_devices

    if devices:
        yield from on_devices(dry_run, devices, forecast, root)


PACK = Pack(
    verbs=(
        PackVerb(
            name="merge",
            command=merge,
            panel=MEASURE,
            examples=(
                "attnbench merge shard-1 shard-2 shard-3",
                "attnbench merge shards/*/* -o whole",
            ),
        ),
    ),
    run_options={"on": On, "address": Address, "devices": Devices, "device_kind": DeviceKind},
    opted=opted,
    foreseen=foreseen,
)
