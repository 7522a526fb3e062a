"""A card's picture as SVG, drawn twice: for wide and for narrow pages; CSS shows one of them."""

from collections.abc import Sequence
from typing import NamedTuple

from ..elements import DotPlot, Figure, Picture, Table, WallChart
from . import plots


class Drawn(NamedTuple):
    wide: str
    narrow: str


def drawn(picture: Picture, backends: Sequence[str], name: str) -> Drawn | None:
    """None for a table, which pages draw themselves. `name`: unique on the page, for ids."""
    match picture:
        case Table():
            return None
        case Figure():
            return Drawn(plots.svg(picture, backends, name, {}), "")
        case WallChart() | DotPlot():
            return Drawn("", "")
