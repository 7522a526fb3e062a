"""`attnbench run --on ray`."""

from importlib.util import find_spec

from ..files.errors import EnvironmentUnmet, option
from ..run.engine import Engine


def engine(address: str, devices: int | None, kind: str | None) -> Engine:
    """The devices of a Ray cluster. Raises EnvironmentUnmet without Ray; nothing of it is imported
    before that.
    """
    if find_spec("ray") is None:
        raise EnvironmentUnmet(
            f"{option('on', 'ray')}: Ray is not installed; wanted 2.50 or newer: pip install"
            " 'attnbench[ray]'"
        )
    from .ray_cluster import OnRay

    return OnRay(address, devices, kind or "")
