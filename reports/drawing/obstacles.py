"""Where a text can stand in a drawing without covering lines, marks or other texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

CLEARANCE = 3.0


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


@dataclass(slots=True)
class Obstacles:
    """What has been drawn: texts and marks as boxes, lines as segments."""

    boxes: list[Box] = field(default_factory=list)
    segments: list[tuple[float, float, float, float]] = field(default_factory=list)

    def add_line(self, points: Sequence[tuple[float, float]]) -> None:
        self.segments += [(*before, *after) for before, after in pairwise(points)]

    def free(self, box: Box, clearance: float = CLEARANCE) -> bool:
        wanted = box.grown(clearance)
        return not any(_overlap(wanted, other) for other in self.boxes) and not any(
            _crosses(wanted, *segment) for segment in self.segments
        )

    def first_free(self, boxes: Iterable[Box], within: Box) -> Box | None:
        """The first of these that is free and inside; it becomes an obstacle."""
        for box in boxes:
            if box.within(within) and self.free(box):
                self.boxes.append(box)
                return box
        return None


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.left < other.right
        and other.left < one.right
        and one.top < other.bottom
        and other.top < one.bottom
    )


def _crosses(box: Box, x: float, y: float, to_x: float, to_y: float) -> bool:
    """Whether a segment has a point inside the box (Liang and Barsky 1984)."""
    enter, leave = 0.0, 1.0
    for step, distances in (
        (to_x - x, (box.left - x, box.right - x)),
        (to_y - y, (box.top - y, box.bottom - y)),
    ):
        if step == 0:
            if distances[0] > 0 or distances[1] < 0:
                return False
            continue
        first, last = sorted(distance / step for distance in distances)
        enter, leave = max(enter, first), min(leave, last)
        if enter > leave:
            return False
    return True
