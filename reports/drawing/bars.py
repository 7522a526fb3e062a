"""Draws bars of shares: each bar is a whole with the parts in use side by side."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ...harness.files.printable import visible
from ..elements import Bar, Bars
from .canvas import COLOURS, GREY, INK, TITLE_IN, inline, page_svg, save, styled

WIDTH_IN, LINE_IN = 4.8, 0.27
LABEL_SHARE, NOTE_SHARE = 0.55, 0.95  # room for labels and notes, in widths of a whole bar
HEIGHT = 0.62  # of a bar, in lines
GAP = 0.006  # between two parts, in whole bars
IN_USE, LIMITING = COLOURS[0], COLOURS[1]
SIZE = 8.5


def svg(bars: Bars, name: str) -> str:
    """SVG for the page; the same bars give the same bytes."""
    with styled(name, **{"axes.grid": False}):
        return inline(page_svg(_drawing(bars, 0.0), name), bars, name)


def draw(bars: Bars, path: Path, dpi: int) -> None:
    """Write a file of its own."""
    with styled(path.stem, **{"axes.grid": False}):
        save(_drawing(bars, TITLE_IN), bars.title, path, dpi)


def _drawing(bars: Bars, title_in: float) -> Canvas:
    lines = sum(1 + len(group) for _, group in bars.groups)
    canvas = Canvas(figsize=(WIDTH_IN, LINE_IN * lines + 0.1 + title_in))
    axes = canvas.add_axes((0, 0, 1, LINE_IN * lines / canvas.get_figheight()))
    axes.set(xlim=(-LABEL_SHARE, 1 + NOTE_SHARE), ylim=(lines, 0))
    axes.set_axis_off()
    line = 0
    for heading, group in bars.groups:
        where, text = (-LABEL_SHARE, line + 0.6), visible(heading)
        axes.text(*where, text, fontsize=SIZE, fontweight="bold", va="center")
        for place, bar in enumerate(group, start=line + 1):
            _bar(axes, bar, place + 0.5)
        line += 1 + len(group)
    return canvas


def _bar(axes: Axes, bar: Bar, y: float) -> None:
    axes.text(-0.02, y, visible(bar.label), fontsize=SIZE, va="center", ha="right")
    colour, weight = (LIMITING, "bold") if bar.full else (IN_USE, "normal")
    start = 0.0
    for share in bar.shares:
        width = max(share - GAP, GAP)
        axes.barh(y, width, left=start, height=HEIGHT, color=colour, linewidth=0)
        start += share
    axes.barh(y, 1, height=HEIGHT, facecolor="none", edgecolor=GREY, linewidth=0.8)
    note = visible(bar.note)
    axes.text(1.02, y, note, fontsize=SIZE, va="center", color=INK, fontweight=weight)
