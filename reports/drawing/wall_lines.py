"""Lines of memory over N: where they are solid, where they stop, which of them look like one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from ..elements import WallLine, WallPoint
from ..formatting import count_text, length_text

NAME_PX = 14.0
SAME_PX = 2.0  # ends of lines nearer than that share a label
SAME_LOG = 0.04  # lines whose needs differ by less look like one


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One backend's line in a panel: its points, clipped to the plot, and how often it is covered.

    `covered`: by how many lines drawn later.
    """

    line: WallLine
    places: tuple[tuple[float, float, WallPoint], ...]
    covered: int


def bundles_of(drawn: Sequence[Drawn]) -> list[list[Drawn]]:
    """Lines that end at one place and stop at one N share a label."""
    bundles: list[list[Drawn]] = []
    for one in drawn:
        if not one.places:
            continue
        for bundle in bundles:
            first = bundle[0]
            same_end = near(first.places[-1], one.places[-1])
            if same_end and stop_words(first.line) == stop_words(one.line):
                bundle.append(one)
                break
        else:
            bundles.append([one])
    return bundles


def stretches(points: Sequence[WallPoint]) -> list[tuple[bool, list[WallPoint]]]:
    """Stretches of a line: solid between measured points, dashed where either end is not."""
    found: list[tuple[bool, list[WallPoint]]] = []
    for before, after in pairwise(points):
        solid = before.end == after.end == "ok"
        if found and found[-1][0] == solid:
            found[-1][1].append(after)
        else:
            found.append((solid, [before, after]))
    return found


def coincide(one: WallLine, other: WallLine) -> bool:
    """The same need, over at least half of the first's points."""
    there = {point.seq_len: point.need_bytes for point in other.points if point.need_bytes}
    known = {point.seq_len: point.need_bytes for point in one.points if point.need_bytes}
    same = sum(n in there and abs(log(there[n] / need)) <= SAME_LOG for n, need in known.items())
    return bool(known) and 2 * same >= len(known)


def near(one: tuple[float, float, WallPoint], other: tuple[float, float, WallPoint]) -> bool:
    return abs(one[0] - other[0]) <= SAME_PX and abs(one[1] - other[1]) <= SAME_PX


def stop_words(one: WallLine) -> str:
    """Where it stops; "" if that is not known."""
    if one.stop_n is not None:
        return length_text(one.stop_n)
    return " to ".join(map(count_text, one.between)) if one.between else ""
