"""Axes of charts: their limits over all panels that are compared, and plain tick labels."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, isfinite, log2, log10

from ..elements import Panel, Scale
from ..formatting import bytes_text, count_text, length_text
from ..quantity import PREFIXED, Quantity, Unit
from .sheet import text_width

TENS = (*PREFIXED, "plain", "share")  # units with powers of ten on logarithmic axes
LEAST, MOST = 1e-280, 1e280  # of axes: beyond, absurd values are outside the picture
ZONE = 4.0  # a logarithmic axis reaches to so many limits of memory: room for what does not fit,
LINEAR_ZONE = 1.4  # and a linear one to so many
FAR = 64.0  # a limit so many times all values is not drawn: they would lie in a corner
TICK_PX, LEAST_TICKS = 30, 3  # apart along the y axis
FRACTIONS = {0.75: "¾", 0.5: "½", 0.25: "¼", 0.125: "⅛"}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Limits = tuple[float, float]
Ticks = list[tuple[float, str]]


def every_x(panels: Iterable[Panel]) -> list[float]:
    xs = {x for panel in panels for one in panel.series for x in one.x if isfinite(x)}
    return sorted(xs)


def x_limits(xs: Sequence[float], scale: Scale) -> Limits:
    """Of all x; a single one is in the middle."""
    if not xs:
        return 1.0, 2.0
    low, high = xs[0], xs[-1]
    if low == high:
        return (low / 2, high * 2) if scale == "log" else (low - 1, high + 1)
    return (low if scale == "log" else min(low, 0.0)), high


def widened(limits: Limits, scale: Scale, below: float, above: float) -> Limits:
    """With so many times their length more at both ends, as it is drawn."""
    low, high = limits
    if scale == "linear":
        return low - below * (high - low), high + above * (high - low)
    return low * (low / high) ** below, high * (high / low) ** above


def y_limits(panels: Sequence[Panel]) -> Limits:
    """Of all values, with some room around them."""
    first = panels[0]
    is_linear, is_limit = first.y_scale == "linear", first.unit == "bytes"
    lines = [panel.line[0] for panel in panels if panel.line is not None]
    every = [
        *(y for panel in panels for one in panel.series for y in (*one.y, *one.low, *one.high)),
        *(() if is_limit else lines),
        *([0.6, 1.8] if first.unit in ("times", "ratio") else []),
    ]
    known = (y for y in every if y is not None and isfinite(y) and (is_linear or y > LEAST))
    ys = [min(max(y, -MOST), MOST) for y in known]
    low, high = (min(ys), max(ys)) if ys else (0.5, 2.0)
    if is_limit and lines:
        limit = max(lines)
        if is_linear and 2 * high >= limit:
            return 0.0, LINEAR_ZONE * limit
        if not is_linear and limit < FAR * high:
            low, high = min(low, limit), max(high, ZONE * limit)
    if is_linear:
        low = min(0.0, low)
        return low, high + 0.06 * ((high - low) or 1.0)
    low = max(low, high / MOST)
    room = max(1.15, (high / low) ** 0.05)
    return low / room, high * room


# ---- ticks ---------------------------------------------------------------------------------------


def y_ticks(limits: Limits, scale: Scale, unit: Unit, tall: float) -> Ticks:
    """Round values within the limits, not too many for so many pixels."""
    most, is_bytes = max(LEAST_TICKS, int(tall / TICK_PX)), unit == "bytes"
    found = powers(*limits, most, 10 if unit in TENS else 2) if scale == "log" else []
    if len(found) < LEAST_TICKS:
        found = steps(*limits, most - (scale == "log"), binary=is_bytes)
    texts = [tick_text(tick, unit) for tick in found]
    if is_bytes:  # the prefix stands where it changes
        units = [text.partition(" ")[2] for text in texts]
        same = [one == before for one, before in zip(units, ["", *units], strict=False)]
        texts = [
            text.partition(" ")[0] if at else text for text, at in zip(texts, same, strict=True)
        ]
    return list(zip(found, texts, strict=True))


def x_ticks(
    limits: Limits, scale: Scale, xs: Sequence[float], at: Callable[[float], float], size: float
) -> Ticks:
    """Of a logarithmic axis the values themselves, as far as their labels have room. Between whole
    numbers there is nothing. `at`: where a value lies, in pixels.
    """
    wide, is_whole = at(limits[1]) - at(limits[0]), all(x == int(x) for x in xs)
    if scale == "linear":
        places = steps(*limits, int(wide / 50), binary=False)
        return [(x, plain_text(x)) for x in places if not is_whole or x == int(x)]
    places = list(xs) if is_whole else powers(*limits, int(wide / 45), 2)
    found: Ticks = []
    for x in reversed(places):
        words = str(count_text(x)) if is_whole else ratio_text(x)[1:]
        room = at(found[-1][0]) - at(x) if found else wide
        beside = found[-1][1] if found else ""
        if not found or room >= (text_width(words, size) + text_width(beside, size)) / 2 + 5:
            found.append((x, words))
    return found[::-1]


def powers(low: float, high: float, most: int, base: int) -> list[float]:
    if base == 2:
        every = range(ceil(log2(low) - 1e-9), floor(log2(high) + 1e-9) + 1)
        step = ceil(len(every) / max(most, 1)) or 1
        return [2.0**power for power in every if power % step == 0]
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    found: list[float] = []
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**ten for ten in decades for factor in factors]
        found = [one for one in found if low <= one <= high]
        if len(found) <= most:
            return found
    return found[:: ceil(len(found) / most)]


def steps(low: float, high: float, most: int, *, binary: bool) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, or of a power of two."""
    rough = (high - low) / max(most, 1)
    ten = 10.0 ** floor(log10(rough))
    step = next(ten * one for one in (1, 2, 5, 10) if ten * one >= rough * (1 - 1e-9))
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
        return f"{plain_text(100 * tick)} %"
    return ratio_text(tick) if unit in ("times", "ratio") else plain_text(tick)


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
