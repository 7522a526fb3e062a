"""Axes of charts: their limits over all panels that are compared, and plain tick labels."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import ceil, floor, isfinite, log, log2

from matplotlib.ticker import MaxNLocator

from ..elements import Panel, Scale
from ..formatting import bytes_text, count_text, length_text
from ..quantity import PREFIXED, Quantity, Unit
from .sheet import text_width

TENS = (*PREFIXED, "plain", "share")  # units with powers of ten on logarithmic axes
LEAST, MOST = 1e-140, 1e140  # of axes: beyond, absurd values are outside the picture
ZONE = 4.0  # a logarithmic axis reaches to so many limits of memory: room for what does not fit,
LINEAR_ZONE = 1.4  # and a linear one to so many
FAR = 64.0  # a limit so many times all values is not drawn: they would lie in a corner
TICK_PX, LEAST_TICKS = 30, 3  # apart along the y axis
TICK_GAP = 11  # between words along the x axis
MOST_PARTS = 1 << 20  # of a ratio that is written as a fraction
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Limits = tuple[float, float]
Ticks = list[tuple[float, str]]


def every_x(panels: Iterable[Panel]) -> list[float]:
    return sorted({x for panel in panels for one in panel.series for x in one.x if isfinite(x)})


def x_limits(xs: Sequence[float], scale: Scale) -> Limits:
    """Of all x; a single one is in the middle."""
    low, high = (xs[0], xs[-1]) if xs else (1.0, 2.0)
    if low == high:
        return (low / 2, high * 2) if scale == "log" else (low - 1, high + 1)
    return (low if scale == "log" else min(low, 0.0)), high


def y_limits(panels: Sequence[Panel]) -> Limits:
    """Of all values."""
    first = panels[0]
    is_linear, is_limit = first.y_scale == "linear", first.unit == "bytes"
    lines = [panel.line[0] for panel in panels if panel.line is not None]
    every = [y for panel in panels for one in panel.series for y in (*one.y, *one.low, *one.high)]
    every += [] if is_limit else lines
    every += [0.6, 1.8] if first.unit in ("times", "ratio") else []
    known = [y for y in every if y is not None and isfinite(y) and (is_linear or y > LEAST)]
    ends = (min(known, default=0.5), max(known, default=2.0))
    low, high = (min(max(end, -MOST), MOST) for end in ends)
    if is_limit and lines:
        limit = max(lines)
        if is_linear and 2 * high >= limit:
            return 0.0, LINEAR_ZONE * limit
        if not is_linear and limit < FAR * high:
            low, high = min(low, limit), max(high, ZONE * limit)
    if is_linear:
        low = min(0.0, low)
        return low, high + 0.06 * ((high - low) or 1.0)
    return widened((low / 1.07, high * 1.07), "log", 0.04, 0.04)


def widened(limits: Limits, scale: Scale, below: float, above: float) -> Limits:
    """With so many times their length more at both ends, as it is drawn."""
    low, high = limits
    if scale == "linear":
        return low - below * (high - low), high + above * (high - low)
    return low * (low / high) ** below, high * (high / low) ** above


def share_of(value: float, limits: Limits, scale: Scale) -> float:
    """Where it lies on an axis: 0 at its lower end, 1 at its upper one."""
    low, high = limits
    if scale == "log":
        value, low, high = log(max(value, LEAST)), log(low), log(high)
    return (value - low) / (high - low)


# ---- ticks ---------------------------------------------------------------------------------------


def y_ticks(limits: Limits, scale: Scale, unit: Unit, tall: float) -> Ticks:
    """Round values within the limits, not too many for so many pixels."""
    most = max(LEAST_TICKS, int(tall / TICK_PX))
    found = powers(limits, most, 10 if unit in TENS else 2) if scale == "log" else []
    if len(found) < LEAST_TICKS:
        found = steps(limits, most, binary=unit == "bytes")
    return [(tick, tick_text(tick, unit)) for tick in found]


def x_ticks(
    limits: Limits, scale: Scale, xs: Sequence[float], at: Callable[[float], float], size: float
) -> Ticks:
    """Of a logarithmic axis the values themselves, as far as their labels have room. Between whole
    numbers there is nothing. `at`: where a value lies, in pixels.
    """
    wide, is_whole = at(limits[1]) - at(limits[0]), all(x == int(x) for x in xs)
    if scale == "linear":
        places = steps(limits, int(wide / 55), binary=False)
        return [(x, plain_text(x)) for x in places if not is_whole or x == int(x)]
    places = list(xs) if is_whole else powers(limits, int(wide / 45), 2)
    found: Ticks = []
    left = wide + at(limits[0]) + 99
    for x in reversed(places):
        words = str(count_text(x)) if is_whole else ratio_text(x)[1:]
        half = text_width(words, size) / 2 + TICK_GAP / 2
        if at(x) + half <= left:
            found.append((x, words))
            left = at(x) - half
    return found


def powers(limits: Limits, most: int, base: int) -> list[float]:
    """With 2 and 5 times, or 3 times them, if there is room; every second or third without."""
    every = range(floor(log(limits[0], base)), ceil(log(limits[1], base)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)) if base == 10 else ((1,),):
        found = within(limits, (one * float(base) ** power for power in every for one in factors))
        if len(found) <= most:
            return found
    step = ceil(len(found) / most)
    return within(limits, (float(base) ** power for power in every if power % step == 0))


def steps(limits: Limits, most: int, *, binary: bool) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, or of a power of two."""
    low, high = limits
    if not binary:
        return within(limits, MaxNLocator(most, steps=(1, 2, 5, 10)).tick_values(low, high))
    step = 2.0 ** ceil(log2((high - low) / most))
    return [step * place for place in range(ceil(low / step), floor(high / step) + 1)]


def within(limits: Limits, values: Iterable[float]) -> list[float]:
    return [float(one) for one in values if limits[0] <= one <= limits[1]]


def tick_text(tick: float, unit: Unit) -> str:
    if tick == 0:
        return "0"
    if unit == "bytes":
        return str(bytes_text(tick))
    if unit in PREFIXED:
        number, _, prefixed = str(Quantity(tick, unit)).partition(" ")
        return f"{float(number):g} {prefixed}"
    if unit == "share":
        return f"{plain_text(100 * tick)} %"
    return ratio_text(tick) if unit in ("times", "ratio") else plain_text(tick)


def ratio_text(tick: float) -> str:
    """`×4`, `×1/64`; a ratio of 0.015625 would have to be worked out."""
    part = Fraction(tick)
    is_part = tick < 1 and part.denominator <= MOST_PARTS
    return f"×{part if is_part else plain_text(tick)}"


def plain_text(value: float) -> str:
    """`0.05`, `20 000`, `2·10⁻⁷`."""
    size = abs(value)
    if size and not 1e-3 <= size < 1e7:
        digits, _, power = f"{value:.2e}".partition("e")
        ten = f"10{str(int(power)).translate(RAISED)}"
        return ten if float(digits) == 1 else f"{float(digits):g}·{ten}"
    return str(length_text(int(value))) if size >= 1000 else f"{value:.6g}"
