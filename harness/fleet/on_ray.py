"""`attnbench run --on ray`: the devices of a Ray cluster."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..files.errors import EnvironmentUnmet, option

if TYPE_CHECKING:
    from .elsewhere import Elsewhere


def engine(address: str, devices: int | None, kind: str | None, *, waits: bool) -> "Elsewhere":
    """Raises EnvironmentUnmet without Ray; nothing of it is imported before that."""
    if find_spec("ray") is None:
        raise EnvironmentUnmet(
            f"{option('on', 'ray')}: Ray is not installed; wanted 2.50 or newer: pip install"
            " 'attnbench[ray]'"
        )
    from .elsewhere import Elsewhere
    from .ray_cluster import RayCluster
    from .ray_seats import Wish

    cluster = RayCluster(address=address, wish=Wish(devices=devices, kind=kind, waits=waits))
    return Elsewhere(cluster.open)
