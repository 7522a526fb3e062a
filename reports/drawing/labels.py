"""What stands at the ends of lines: names, those of lines that end as one together."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log

from ..data.row_groups import by
from ..elements import Panel, Series
from .sheet import LINE_PX, NAME_PX, text_width, wrapped

SAME_LOG = 0.04  # ends that differ by less share a label
CROSSED = ("failed", "untried")


@dataclass(frozen=True, slots=True)
class Label:
    """Names, and below them what is said of all these series."""

    names: Sequence[tuple[str, str]]  # a line of text, the backend that it names
    ending: Sequence[str]
    series: Sequence[Series]

    @property
    def height(self) -> float:
        return LINE_PX * (len(self.names) + len(self.ending)) + 3

    def width(self, size: float) -> float:
        names = [text_width(words, NAME_PX, bold=True) for words, _ in self.names]
        return max([*names, *(text_width(words, size) for words in self.ending)])


def labels_of(panel: Panel, most: float, size: float) -> list[Label]:
    """In the order of the first series, in lines of at most so many pixels."""
    bundles: list[list[Sequence[Series]]] = []
    for mine in by(panel.series, lambda one: one.backend).values():
        alike = (some for some in bundles if _end_as_one(some[0], mine))
        bundle = next(alike, None)
        if bundle is None:
            bundles.append([mine])
        else:
            bundle.append(mine)
    return [
        Label(
            names=[
                (part, mine[0].backend)
                for mine in some
                for part in wrapped(mine[0].backend, most, NAME_PX, bold=True)
            ],
            ending=wrapped(_ending(some[0]), most, size) if _ending(some[0]) else [],
            series=[one for mine in some for one in mine],
        )
        for some in bundles
    ]


def _end_as_one(some: Sequence[Series], others: Sequence[Series]) -> bool:
    (x, y), (to_x, to_y) = _end(some), _end(others)
    is_near = min(y, to_y) > 0 and abs(log(y / to_y)) <= SAME_LOG
    return x == to_x and is_near and _ending(some) == _ending(others)


def _end(mine: Sequence[Series]) -> tuple[float, float]:
    """Where the line of a backend ends; (0, 0) without one."""
    solid = (one for one in mine if one.kind not in CROSSED)
    points = ((x, y) for one in solid for x, y in zip(one.x, one.y, strict=True))
    return max(((x, y) for x, y in points if y is not None and isfinite(y)), default=(0.0, 0.0))


def _ending(mine: Sequence[Series]) -> str:
    return next((one.ending for one in mine if one.ending), "")
