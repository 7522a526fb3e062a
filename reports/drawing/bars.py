"""Draws bars of shares: a whole each, with what is taken of it side by side, so that what ends
first is seen to be full.
"""

from io import StringIO
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ..elements import Bar, Bars
from ..formatting import visible
from .plots import COLOURS, GREY, LETTER_IN, STYLE, TITLE_IN, inline
from .svg_minify import INK, compact

WIDTH_IN, LINE_IN = 4.8, 0.27
LABEL_SHARE, NOTE_SHARE = (
    0.55,
    0.95,
)  # of the width of a whole: room for the labels before it, and for the notes after it
HEIGHT = 0.62  # of a bar, in lines
GAP = 0.006  # between two parts, in wholes
TAKEN, ENDS_FIRST = COLOURS[0], COLOURS[1]
SIZE = 8.5


def svg(bars: Bars, name: str) -> str:
    """`name` makes the ids of this figure its own; the same bars give the same bytes."""
    with mpl.rc_context():
        canvas = _drawing(bars, name, 0.0)
        text = StringIO()
        canvas.savefig(
            text, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return inline(compact(text.getvalue(), name), bars, name)


def draw(bars: Bars, path: Path, dpi: int) -> None:
    """Into a file of its own, black on white, in the format that its suffix names, with the title
    in it.
    """
    with mpl.rc_context():
        canvas = _drawing(bars, path.stem, TITLE_IN)
        canvas.suptitle(
            fill(visible(bars.title), int(canvas.get_figwidth() / LETTER_IN)),
            fontsize=STYLE["font.size"],
        )
        dateless = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}
        canvas.savefig(path, dpi=dpi, facecolor="white", metadata=dateless.get(path.suffix[1:]))


def _drawing(bars: Bars, name: str, title_in: float) -> Canvas:
    mpl.rcdefaults()
    mpl.rcParams.update({**STYLE, "axes.grid": False, "svg.hashsalt": name})
    lines = sum(1 + len(members) for _, members in bars.groups)
    canvas = Canvas(figsize=(WIDTH_IN, LINE_IN * lines + 0.1 + title_in))
    drawn = LINE_IN * lines / canvas.get_figheight()
    axes = canvas.add_axes((0, 0, 1, drawn))
    axes.set(xlim=(-LABEL_SHARE, 1 + NOTE_SHARE), ylim=(lines, 0))
    axes.set_axis_off()
    line = 0
    for heading, members in bars.groups:
        axes.text(
            -LABEL_SHARE,
            line + 0.6,
            visible(heading),
            fontsize=SIZE,
            fontweight="bold",
            va="center",
        )
        for place, bar in enumerate(members, start=line + 1):
            _bar(axes, bar, place + 0.5)
        line += 1 + len(members)
    return canvas


def _bar(axes: Axes, bar: Bar, y: float) -> None:
    axes.text(-0.02, y, visible(bar.label), fontsize=SIZE, va="center", ha="right")
    start = 0.0
    for share in bar.shares:
        axes.barh(
            y,
            max(share - GAP, GAP),
            left=start,
            height=HEIGHT,
            color=ENDS_FIRST if bar.full else TAKEN,
            linewidth=0,
        )
        start += share
    axes.barh(y, 1, height=HEIGHT, facecolor="none", edgecolor=GREY, linewidth=0.8)
    axes.text(
        1.02,
        y,
        visible(bar.note),
        fontsize=SIZE,
        va="center",
        color=INK,
        fontweight="bold" if bar.full else "normal",
    )
