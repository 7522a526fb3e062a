"""Draws maps of weights: a square per head, all with one colour scale, which ends where few weights
are larger, so that one bright spot leaves the others visible.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from math import ceil, isfinite
from struct import pack
from zlib import compress, crc32

from ..elements import Map, Maps
from .chart_axes import plain_text
from .marks import TEXT_EM, line, rect, svg, text, text_width, wrapped

SHARE_BELOW = 0.99  # of the weights above 0 that the scale tells apart
# Viridis at nine places: even to the eye, on white and on black.
COLOURS = (
    (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141),
    (39, 173, 129), (92, 200, 99), (170, 220, 50), (253, 231, 37),
)  # fmt: skip
SIDE, LEFT, RIGHT, TOP, BELOW = 190.0, 34.0, 8.0, 26.0, 40.0
BAR_WIDE, BAR_HIGH, BAR_STEPS = 190.0, 12.0, 64
MOST_TICKS = 5
NAME_PX, TEXT_PX = 14.0, 13.0
NAME_STEP = 17.0  # from line to line of a name


def draw(maps: Maps) -> list[str]:
    """SVG of each map, and of the scale."""
    weights = sorted(
        w for one in maps.maps for row in one.rows for w in row if isfinite(w) and w > 0
    )
    highest = weights[-1] if weights else 1.0
    top = weights[int(SHARE_BELOW * (len(weights) - 1))] if weights else 1.0
    names = [wrapped(one.label, SIDE, NAME_PX) for one in maps.maps]
    start = TOP + NAME_STEP * (max(map(len, names), default=1) - 1)  # the same for all
    return [
        *(_map(maps, one, name, start, top) for one, name in zip(maps.maps, names, strict=True)),
        _scale(maps, top, clips=highest > top),
    ]


def _map(maps: Maps, one: Map, name: Sequence[str], start: float, top: float) -> str:
    """`name`: in lines; `start`: where the square begins; `top`: the weight of the last colour."""
    rows, columns = len(one.rows), len(one.rows[0])
    width, height = LEFT + SIDE + RIGHT, start + SIDE + BELOW
    parts = [text(LEFT, 14 + NAME_STEP * at, part, "pt") for at, part in enumerate(name)]
    parts.append(_image(one.rows, (LEFT, start, SIDE, SIDE), top))
    for x, words in _ticks(LEFT, columns):
        parts.append(text(x, start + SIDE + 16, words, "tk", "middle"))
    for y, words in _ticks(start, rows):
        parts.append(text(LEFT - 6, y + 4.5, words, "tk", "end"))
    axes = f"{maps.x_label} →, {maps.y_label} ↓"
    parts.append(text(LEFT + SIDE, start + SIDE + 33, axes, "tk", "end"))
    return svg(width, height, "map", f"{one.label}. {maps.description}", "".join(parts))


def _scale(maps: Maps, top: float, *, clips: bool) -> str:
    steps = [[step / BAR_STEPS for step in range(BAR_STEPS + 1)]]
    parts = [text(0, 14, maps.value_label, "tk")]
    parts.append(_image(steps, (0, 22, BAR_WIDE, BAR_HIGH), 1.0))
    below = 22 + BAR_HIGH
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        words = plain_text(float(f"{share * top:.2g}"))
        words = f"≥ {words}" if clips and share == 1 else words
        parts.append(line(share * BAR_WIDE, below, share * BAR_WIDE, below + 4, "ax"))
        parts.append(text(share * BAR_WIDE, below + 18, words, "tk", anchor))
    said = f"Colours of {maps.value_label}"
    return svg(LEFT + SIDE + RIGHT, below + 24, "map scale", said, "".join(parts))


def _ticks(start: float, count: int) -> Iterator[tuple[float, str]]:
    """The middle of some cells, and their number, as far as numbers have room."""
    most = max(1, int(SIDE / (text_width(str(count), TEXT_PX, TEXT_EM) + 16)))
    for tick in range(0, count, ceil(count / min(most, MOST_TICKS))):
        yield start + SIDE * (tick + 0.5) / count, str(tick + 1)


def _image(
    rows: Sequence[Sequence[float]], box: tuple[float, float, float, float], top: float
) -> str:
    """A pixel per weight, in a frame."""
    x, y, width, height = box
    pixels = [bytes(c for w in row for c in _colour(w / top)) for row in rows]
    data = b64encode(_png(pixels)).decode()
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    image = f'<image {place} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    return image + rect(x, y, width, height, "frame")


def _colour(share: float) -> tuple[int, ...]:
    share = min(max(share, 0.0), 1.0) if isfinite(share) else 0.0
    place = min(int(share * (len(COLOURS) - 1)), len(COLOURS) - 2)
    within = share * (len(COLOURS) - 1) - place
    pairs = zip(COLOURS[place], COLOURS[place + 1], strict=True)
    return tuple(round(one + within * (other - one)) for one, other in pairs)


def _png(lines: Sequence[bytes]) -> bytes:
    """Of lines of red, green and blue bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", crc32(kind + data))

    header = pack(">IIBBBBB", len(lines[0]) // 3, len(lines), 8, 2, 0, 0, 0)
    pixels = compress(b"".join(b"\0" + one for one in lines), 9)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    )
