"""Where a text can stand in a drawing without covering lines, marks or other texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import NamedTuple

CLEARANCE, PIECE_PX = 3.0, 6


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> "Box":
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def within(self, other: "Box") -> bool:
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@dataclass(slots=True)
class Obstacles:
    """What has been drawn: texts, marks and pieces of lines, as boxes."""

    boxes: list[Box] = field(default_factory=list)

    def add_line(self, points: Sequence[tuple[float, float]]) -> None:
        for (x, y), (to_x, to_y) in pairwise(points):
            pieces = 1 if y == to_y else ceil(abs(to_x - x) + abs(to_y - y)) // PIECE_PX + 1
            for piece in range(pieces):
                ends = [
                    (x + share * (to_x - x), y + share * (to_y - y))
                    for share in (piece / pieces, (piece + 1) / pieces)
                ]
                (left, right), (top, bottom) = map(sorted, zip(*ends, strict=True))
                self.boxes.append(Box(left, top, right, bottom))

    def free(self, box: Box) -> bool:
        wanted = box.grown(CLEARANCE)
        return not any(wanted.overlaps(other) for other in self.boxes)

    def first_free(self, boxes: Iterable[Box], within: Box) -> Box | None:
        """The first of these that is free and inside; it becomes an obstacle."""
        for box in boxes:
            if box.within(within) and self.free(box):
                self.boxes.append(box)
                return box
        return None
