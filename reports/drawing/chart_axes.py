"""Axes of charts: scales, their limits over all panels that are compared, and plain tick labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log, log2, log10

from ..elements import Panel, Scale
from ..formatting import bytes_text, count_text, length_text
from ..quantity import PREFIXED, Quantity, Unit

TENS = (*PREFIXED, "plain", "share")  # units with powers of ten on logarithmic axes
LEAST, MOST = 1e-300, 1e300  # of axes: beyond, absurd values are outside the picture
ZONE = 4.0  # a logarithmic axis reaches to so many limits of memory: room for what does not fit,
LINEAR_ZONE = 1.4  # and a linear one to so many
FAR = 64.0  # a limit so many times all values is not drawn: they would lie in a corner
TICK_PX, LEAST_TICKS = 30, 3  # apart along the y axis
FRACTIONS = {0.75: "¾", 0.5: "½", 0.25: "¼", 0.125: "⅛"}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Tick = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from low to high along a line of the drawing."""

    scale: Scale
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float, *, clipped: bool = True) -> float:
        """`clipped`: to the line."""
        if self.scale == "linear":
            share = (value - self.low) / (self.high - self.low)
        else:
            share = (log(max(value, LEAST)) - log(self.low)) / (log(self.high) - log(self.low))
        share = min(max(share, 0.0), 1.0) if clipped else share
        return self.start + share * (self.end - self.start)


def y_limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Of all values, with some room around them."""
    first = panels[0]
    is_linear = first.y_scale == "linear"
    lines = [panel.line[0] for panel in panels if panel.line is not None]
    every = [
        *(y for panel in panels for one in panel.series for y in (*one.y, *one.low, *one.high)),
        *(lines if first.unit != "bytes" else ()),
        *([0.6, 1.8] if first.unit in ("times", "ratio") else []),
    ]
    ys = [
        min(max(y, -MOST), MOST)
        for y in every
        if y is not None and isfinite(y) and (is_linear or y > LEAST)
    ]
    low, high = (min(ys), max(ys)) if ys else (0.5, 2.0)
    if first.unit == "bytes" and lines:
        limit = max(lines)
        if is_linear and 2 * high >= limit:
            return 0.0, LINEAR_ZONE * limit
        if not is_linear and limit < FAR * high:
            low, high = min(low, limit), max(high, ZONE * limit)
    if is_linear:
        low = min(0.0, low)
        return low, high + 0.06 * ((high - low) or 1.0)
    if high / low > 1e280:
        low = high / 1e280
    room = max(1.15, (high / low) ** 0.05)
    return low / room, high * room


def x_limits(xs: Sequence[float], scale: Scale) -> tuple[float, float]:
    """Of all x; a single one is in the middle."""
    if not xs:
        return 1.0, 2.0
    low, high = min(xs), max(xs)
    if low == high:
        return (low / 2, high * 2) if scale == "log" else (low - 1, high + 1)
    return (low if scale == "log" else min(low, 0.0)), high


# ---- ticks ---------------------------------------------------------------------------------------


def y_ticks(axis: Axis, unit: Unit) -> list[Tick]:
    """Round values within the limits, not too many."""
    most = max(LEAST_TICKS, int(abs(axis.end - axis.start) / TICK_PX))
    if axis.scale == "linear":
        found = _steps(axis.low, axis.high, most, binary=unit == "bytes")
    else:
        found = powers(axis.low, axis.high, most, 10 if unit in TENS else 2)
        if len(found) < LEAST_TICKS:
            found = _steps(axis.low, axis.high, most - 1, binary=unit == "bytes")
    texts = [tick_text(tick, unit) for tick in found]
    if unit == "bytes":  # the prefix stands where it changes
        units = [text.partition(" ")[2] for text in texts]
        texts = [
            text if its != before else text.partition(" ")[0]
            for text, its, before in zip(texts, units, ["", *units], strict=False)
        ]
    return list(zip(found, texts, strict=True))


def x_ticks(axis: Axis, xs: Sequence[float], text_px: float) -> list[Tick]:
    """Of a logarithmic axis the values themselves, as far as their labels have room. Between whole
    numbers there is nothing.
    """
    wide = axis.end - axis.start
    whole = all(x == int(x) for x in xs if isfinite(x))
    if axis.scale == "linear":
        places = _steps(axis.low, axis.high, int(wide / 50), binary=False)
        return [(x, plain_text(x)) for x in places if not whole or x == int(x)]
    places = list(xs) if whole else powers(axis.low, axis.high, int(wide / 45), 2)
    found: list[Tick] = []
    for x in reversed(places):
        words = str(count_text(x)) if whole else ratio_text(x)[1:]
        right, next_words = found[-1] if found else (inf, "")
        room = text_px * 0.29 * (len(words) + len(next_words)) + 4
        if not found or axis.at(right) - axis.at(x) >= room:
            found.append((x, words))
    return found[::-1]


def powers(low: float, high: float, most: int, base: int) -> list[float]:
    if base == 2:
        every = range(ceil(log2(low) - 1e-9), floor(log2(high) + 1e-9) + 1)
        step = ceil(len(every) / most) or 1
        return [2.0**power for power in every if power % step == 0]
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [step * 10.0**ten for ten in decades for step in steps]
        found = [one for one in found if low <= one <= high]
        if len(found) <= most:
            return found
    return found[:: ceil(len(found) / most)]


def _steps(low: float, high: float, most: int, *, binary: bool) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, or of a power of two."""
    rough = (high - low) / max(most, 1)
    if not rough > 0 or not isfinite(rough):
        return [low]
    ten = 10.0 ** floor(log10(rough))
    round_ones = (ten * factor for factor in (1, 2, 5, 10))
    step = next(one for one in round_ones if one >= rough * (1 - 1e-9))
    step = 2.0 ** ceil(log2(rough)) if binary else step
    return [step * place for place in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def tick_text(tick: float, unit: Unit) -> str:
    if tick == 0:
        return "0"
    if unit == "bytes":
        return str(bytes_text(tick))
    if unit in PREFIXED:
        number, _, prefixed = str(Quantity(tick, unit)).partition(" ")
        return f"{float(number):g} {prefixed}"
    if unit == "share":
        percent = 100 * tick
        return f"{length_text(int(percent)) if percent >= 1000 else plain_text(percent)} %"
    if unit in ("times", "ratio"):
        return ratio_text(tick)
    return plain_text(tick)


def ratio_text(tick: float) -> str:
    """`×4`, `×½`, `×1/64`; a ratio of 0.015625 would have to be worked out."""
    inverse = 1 / tick if tick > 0 else 0.0
    if tick in FRACTIONS:
        return f"×{FRACTIONS[tick]}"
    if 0 < tick < 1 and abs(inverse - round(inverse)) < 1e-6 and log2(round(inverse)) % 1 == 0:
        return f"×1/{plain_text(round(inverse))}"
    return f"×{plain_text(tick)}"


def plain_text(value: float) -> str:
    """`0.05`, `20 000`, `2·10⁻⁷`."""
    size = abs(value)
    if size and not 1e-3 <= size < 1e7:
        digits, _, power = f"{value:.2e}".partition("e")
        ten = f"10{str(int(power)).translate(RAISED)}"
        return ten if float(digits) == 1 else f"{float(digits):g}·{ten}"
    return str(length_text(int(value))) if size >= 1000 else f"{value:.6g}"


def every_x(panels: Iterable[Panel]) -> list[float]:
    xs = {x for panel in panels for one in panel.series for x in one.x if isfinite(x)}
    return sorted(xs)
