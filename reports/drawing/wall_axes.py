"""Axes of the wall chart: one pair of scales for all panels, the measures of each version."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log2

from ..elements import Scale, WallChart, WallLine
from ..formatting import bytes_text
from .marks import Width

MOST_TICKS = 7
ZONE_SHARE = 4  # the axis reaches to at least so many budgets: room for words in the zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Measures of one version, in units of its view box."""

    width: float
    between: float
    most_label: float
    text_px: float
    plot_height: float
    stacked: bool


LAYOUTS: dict[Width, Layout] = {
    "wide": Layout(
        width=632,
        between=16,
        most_label=96,
        text_px=13,
        plot_height=283,
        stacked=False,
    ),
    "narrow": Layout(
        width=326,
        between=0,
        most_label=96,
        text_px=14,
        plot_height=216,  # the first panel of a phone is to be seen beside both answers
        stacked=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Scales of all panels."""

    scale: Scale
    lengths: tuple[int, ...]
    low: float
    high: float
    height: float

    def x(self, n: float, left: float, width: float) -> float:
        if self.scale == "linear":
            return left + width * n / self.lengths[-1]
        first, last = self.lengths[0], self.lengths[-1]
        return left + width * (log(n / first) / log(last / first) if last > first else 0.5)

    def y(self, size: float, top: float) -> float:
        """Not clipped."""
        if self.scale == "linear":
            return top + self.height * (1 - size / self.high)
        return top + self.height * (1 - log(size / self.low) / log(self.high / self.low))


def axes_of(chart: WallChart, lines: Sequence[WallLine], scale: Scale, height: float) -> Axes:
    lengths = tuple(sorted({point.seq_len for one in lines for point in one.points}))
    known = [point.need_bytes for one in lines for point in one.points if point.need_bytes]
    low, high = (min(known), max(known)) if known else (1 << 20, 1 << 30)
    budget = chart.budget_bytes
    if scale == "linear":
        reaches = budget is not None and 2 * high >= budget
        top = 1.4 * budget if reaches and budget else 1.1 * high
        return Axes(scale=scale, lengths=lengths, low=0.0, high=top, height=height)
    top = max(1.6 * high, ZONE_SHARE * budget) if budget else 1.6 * high
    low = min(low, budget) if budget else low
    return Axes(scale=scale, lengths=lengths, low=low / 1.25, high=top, height=height)


def size_ticks(axes: Axes) -> list[tuple[float, str]]:
    """Sizes with their texts; the unit stands where it changes."""
    if axes.scale == "linear":
        step = 2.0 ** ceil(log2(axes.high / (MOST_TICKS - 1)))
        sizes = [step * place for place in range(floor(axes.high / step) + 1)]
    else:
        powers = range(ceil(log(axes.low, 4)), floor(log(axes.high, 4)) + 1)
        every = ceil(len(powers) / MOST_TICKS) or 1
        sizes = [4.0**power for power in powers if power % every == 0]
    found, unit = [], ""
    for size in sizes:
        number, _, its = (bytes_text(size) if size else "0").partition(" ")
        found.append((size, f"{number} {its}" if its and its != unit else number))
        unit = its or unit
    return found or [(axes.high, "")]
