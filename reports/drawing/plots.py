"""Draws a figure as SVG text: text and axes take the colour of the page around it."""

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10, nan
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ...harness.files.printable import visible
from ..elements import Figure, Panel, Series
from ..formatting import count_text, length_text
from ..quantity import PREFIXED, Quantity, Unit
from .canvas import (
    COLOURS,
    GREY,
    INK,
    LETTER_IN,
    TITLE_IN,
    inline,
    page_svg,
    save,
    styled,
)
from .tooltips import HIGHEST, STEP, overlay

MARKERS = ("o", "s", "^", "D", "v", "P", "p")  # no crosses: they mean that a case did not run
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (8, 2, 1.5, 1.5, 1.5, 2)),
)
FORMULA: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.8, "linestyle": (0, (1, 1))}
CROSS: dict[str, Any] = {"marker": "x", "markersize": 8, "markeredgewidth": 2, "linestyle": "none"}
WIDTH_IN, HEIGHT_IN, LOW_IN, WIDE_PANEL_IN = 4.8, 3.5, 2.3, 3.1
SMALL_IN, MOST_ACROSS = 2.4, 4  # width and height of small multiples
SMALL_LETTERS = 30  # of a line of their titles
LEGEND_SIZE, HANDLE_IN = 8.5, 0.55
LEAST, MOST, WIDEST = 1e-300, 1e300, 1e60  # of axes: beyond, absurd values are outside the picture
MOST_X_TICKS, MOST_Y_TICKS = 9, 7
LEAST_APART = 0.08  # of a logarithmic axis: two labels nearer than that would touch
MOST_LETTERS = 48
SWATCH_IN = (0.5, 0.2)
TENS = (*PREFIXED, "plain", "share")  # units with powers of ten on logarithmic axes


def svg(figure: Figure, backends: Sequence[str], name: str, cases: Mapping[str, int]) -> str:
    """SVG for the page, which has the legend of its backends; tooltips lie on top. `name` makes the
    ids of this figure its own.

    `backends` are all of the page, so that each keeps its colour, marker and dashes. `cases`: the
    number of each case on the page.
    """
    with styled(name):
        canvas, axes = _drawing(figure, backends, LOW_IN if figure.low else HEIGHT_IN)
        if figure.names:
            _legend(canvas, figure, backends)
        text = page_svg(canvas, name)
        known = () if figure.names else backends
        return inline(text, figure, name, overlay(canvas, figure, axes, known, cases))


def draw(figure: Figure, backends: Sequence[str], path: Path, dpi: int) -> None:
    """Write a file of its own."""
    with styled(path.stem):
        canvas, _ = _drawing(figure, backends, HEIGHT_IN + TITLE_IN)
        _legend(canvas, figure, backends)
        save(canvas, figure.title, path, dpi)


def _drawing(
    figure: Figure, backends: Sequence[str], height_in: float
) -> tuple[Canvas, Sequence[Axes]]:
    """The panels without a legend; small multiples in lines of up to MOST_ACROSS.

    Lines of the page's backends get ids, by which its legend switches them off.
    """
    count = len(figure.panels)
    small = any(panel.title for panel in figure.panels)
    across = min(count, MOST_ACROSS) if small else count
    lines = ceil(count / across)
    width = WIDTH_IN if count == 1 else (SMALL_IN if small else WIDE_PANEL_IN) * across
    height = SMALL_IN * lines + height_in - HEIGHT_IN if small else height_in
    canvas = Canvas(figsize=(width, height), layout="constrained")
    axes = list(canvas.subplots(lines, across, squeeze=False).flat)
    for number, (panel, place) in enumerate(zip(figure.panels, axes, strict=False)):
        limits = _limits(figure.panels if figure.same_y else (panel,))
        _panel(place, panel, figure.names or backends, limits, None if figure.names else number)
        if small:
            _as_small_multiple(
                place, panel, first=not number % across, last=number + across >= count
            )
            if figure.same_y and number % across:
                place.tick_params(axis="y", labelleft=False)
    for unused in axes[count:]:
        unused.set_axis_off()
    return canvas, axes[:count]


def _as_small_multiple(axes: Axes, panel: Panel, *, first: bool, last: bool) -> None:
    """With its title in several lines; `first` of its line, with y; `last` below, with x."""
    title = fill(visible(panel.title), SMALL_LETTERS, max_lines=3, placeholder=" …")
    axes.set_title(title, fontsize=LEGEND_SIZE)
    axes.set_xlabel(panel.x_label.partition(" (")[0] if last else "")
    if not first:
        axes.set_ylabel("")


def swatches(backends: Sequence[str]) -> str:
    """A sample of each line, as symbols for the page's legends."""
    looks = [(f"look-{place}", _look(name, backends)) for place, name in enumerate(backends)]
    looks += [("look-formula", {"color": INK, **FORMULA}), ("look-failed", {"color": INK, **CROSS})]
    return "".join(_swatch(name, look) for name, look in looks)


def _swatch(name: str, look: dict[str, Any]) -> str:
    with styled(name):
        canvas = Canvas(figsize=SWATCH_IN)
        axes = canvas.add_axes((0, 0, 1, 1))
        axes.axis("off")
        axes.plot([0, 1, 2], [0, 0, 0], markevery=[1], clip_on=False, **look)
        axes.set(xlim=(-0.1, 2.1), ylim=(-1, 1))
        text = page_svg(canvas, name)
    box = re.search(r'viewBox="[^"]*"', text)
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    return f'<symbol id="{name}" {box.group() if box else ""}>{inside}</symbol>'


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """The limits of y over these panels, with room for crosses at the upper edge."""
    every, is_linear = (
        [one for panel in panels for one in panel.series],
        panels[0].y_scale == "linear",
    )
    ys = [
        y
        for series in every
        for y in (*series.y, *series.low, *series.high)
        if y is not None and isfinite(y) and (is_linear or y > 0)
    ]
    ys += [panel.line[0] for panel in panels if panel.line is not None]
    ys += [0.6, 1.8] if panels[0].unit == "times" else []
    low, high = (min(ys), max(ys)) if ys else (0.5, 2.0)
    if is_linear:
        return max(-MOST, min(0.0, low)), min(MOST, high + 0.1 * (high - min(0.0, low) or 1))
    crosses = max(
        (_stacked(series.x, panel.series) for panel in panels for series in panel.series), default=0
    )
    room = 0.08 + STEP * crosses  # of the height
    span = min(1.5 * high / low, WIDEST)
    return max(LEAST, low / 1.5), min(MOST, high * max(1.5, span ** (room / (1 - room))))


def _stacked(xs: Sequence[float], series: Sequence[Series]) -> int:
    """The most failed points without y at one x."""
    failed = [one for one in series if one.kind == "failed"]
    floating = [x for one in failed for x, y in zip(one.x, one.y, strict=True) if y is None]
    return max((floating.count(x) for x in xs), default=0)


def _panel(
    axes: Axes,
    panel: Panel,
    backends: Sequence[str],
    limits: tuple[float, float],
    number: int | None,
) -> None:
    """`number`: of the panel, for the ids of its lines; None for lines without."""
    if panel.x_scale == "log":
        axes.set_xscale("log", base=2)
    if panel.y_scale == "log":
        axes.set_yscale("log", base=10 if panel.unit in TENS else 2)
    stacked: dict[float, int] = {}
    for series in panel.series:
        own = len(axes.lines)  # the lines of this series start here
        _series(axes, series, _look(series.backend, backends), stacked)
        if number is not None and series.backend in backends:
            for place, line in enumerate(axes.lines[own:], start=own):
                line.set_gid(f"b{backends.index(series.backend)}-{number}-{place}")
    if panel.line is not None:
        axes.axhline(panel.line[0], color=INK, linewidth=1, linestyle=(0, (1, 2)))
        where: Any = ("axes fraction", "data")
        axes.annotate(
            _label(panel.line[1]),
            (0, panel.line[0]),
            (3, 3),
            xycoords=where,
            textcoords="offset points",
            fontsize=LEGEND_SIZE,
        )
    axes.set(xlabel=_label(panel.x_label), ylabel=_label(panel.y_label))
    xs = sorted({x for series in panel.series for x in series.x})
    if xs and panel.x_scale == "log":
        axes.set_xlim(xs[0] / 1.35, xs[-1] * 1.35)
    axes.set_ylim(*limits)
    if panel.x_scale == "log":
        shown = _with_room(xs)
        _tick(axes.xaxis, shown, [count_text(x) for x in shown])
    if panel.y_scale == "log":
        ticks = _ticks(*limits, panel.unit)
        _tick(axes.yaxis, ticks, [_tick_text(tick, panel.unit) for tick in ticks])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(MOST_Y_TICKS - 1))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: _tick_text(tick, panel.unit)))


def _label(text: str) -> str:
    """Shortened: a long label would leave no room for the axes."""
    shown = visible(text)
    return shown if len(shown) <= MOST_LETTERS else f"{shown[: MOST_LETTERS - 1]}…"


def _with_room(xs: Sequence[float]) -> list[float]:
    """Places on a logarithmic axis whose labels do not touch, from the longest down."""
    shown: list[float] = []
    for x in xs[:: -(ceil(len(xs) / MOST_X_TICKS) or 1)]:
        if not shown or shown[-1] / x >= (xs[-1] / xs[0]) ** LEAST_APART:
            shown.append(x)
    return shown


def _tick(axis: Axis, places: Sequence[float], texts: Sequence[str]) -> None:
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_major_formatter(FixedFormatter(list(texts)))
    axis.set_minor_locator(NullLocator())


def _series(axes: Axes, series: Series, look: dict[str, Any], stacked: dict[float, int]) -> None:
    ys = [nan if y is None else y for y in series.y]
    if series.kind == "formula":
        axes.plot(series.x, ys, color=look["color"], **FORMULA)
    elif series.kind == "trace":
        axes.plot(series.x, ys, color=look["color"], linestyle=look["linestyle"], linewidth=1.1)
    elif series.kind == "measured":
        axes.plot(series.x, ys, **look)
        bars = [
            (x, a, b)
            for x, a, b in zip(series.x, series.low, series.high, strict=False)
            if a is not None and b is not None
        ]
        if bars:  # one line with gaps: a line per bar would triple the size of the drawing
            xs = [value for x, _, _ in bars for value in (x, x, nan)]
            ends = [value for _, a, b in bars for value in (a, b, nan)]
            axes.plot(xs, ends, color=look["color"], linewidth=4, alpha=0.5, solid_capstyle="butt")
    else:
        cross = {**CROSS, "markersize": look["markersize"] + 1, "color": look["color"]}
        axes.plot(series.x, ys, **cross)
        floating = [x for x, y in zip(series.x, series.y, strict=True) if y is None]
        heights = []
        for x in floating:  # at the upper edge, below each other if there are several at one x
            heights.append(HIGHEST - STEP * stacked.get(x, 0))
            stacked[x] = stacked.get(x, 0) + 1
        if floating:  # an empty line would take room at the lower left corner
            at_edge = axes.get_xaxis_transform()
            axes.plot(floating, heights, transform=at_edge, clip_on=False, **cross)


def _look(backend: str, backends: Sequence[str]) -> dict[str, Any]:
    """Hollow markers of three sizes, so that coinciding points stay visible."""
    hollow = {"markerfacecolor": "none", "markeredgewidth": 1.5}
    if backend not in backends:
        return {"color": GREY, "marker": "o", "linestyle": "-", "markersize": 5, **hollow}
    place = list(backends).index(backend)
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": DASHES[place % len(DASHES)],
        "markersize": (8.5, 6.5, 5)[place % 3],
        **hollow,
    }


def legend(figure: Figure, backends: Sequence[str]) -> list[tuple[str, str]]:
    """The legend as (look, text); look: a backend's place among all, "formula" or "failed"."""
    drawn = [series for panel in figure.panels for series in panel.series if series.x]
    entries = [
        (str(place), name)
        for place, name in enumerate(backends)
        if any(series.backend == name for series in drawn)
    ]
    kinds = {series.kind for series in drawn}
    if "formula" in kinds:
        entries.append(("formula", "by formula"))
    if "failed" in kinds:
        entries.append(
            ("failed", "out of memory" if figure.panels[0].unit == "bytes" else "did not run")
        )
    return entries


def _legend(canvas: Canvas, figure: Figure, backends: Sequence[str]) -> None:
    backends = figure.names or backends
    looks: dict[str, dict[str, Any]] = {
        "formula": {"color": INK, **FORMULA},
        "failed": {"color": INK, **CROSS},
    }
    entries = legend(figure, backends)
    if entries:
        handles = [
            Line2D([], [], **(looks.get(look) or _look(backends[int(look)], backends)))
            for look, _ in entries
        ]
        # matplotlib hides entries that begin with an underscore; a thin space in front keeps them
        texts = ["\u2009" + visible(text) for _, text in entries]
        columns = max(
            1, int(canvas.get_figwidth() / (HANDLE_IN + LETTER_IN * max(map(len, texts))))
        )
        canvas.legend(
            handles,
            texts,
            loc="outside lower center",
            ncols=columns,
            fontsize=LEGEND_SIZE,
            handlelength=3,
            columnspacing=1.2,
        )


def _tick_text(tick: float, unit: Unit) -> str:
    if unit == "bytes" or unit in PREFIXED:
        return str(Quantity(tick, unit)).replace(".00 ", " ").replace(".0 ", " ")
    if unit == "share":
        return f"{length_text(int(100 * tick))} %" if tick >= 10 else f"{100 * tick:g} %"
    return f"{tick:g}"


def _ticks(low: float, high: float, unit: str) -> list[float]:
    """Round values within the limits, not too many."""
    ticks: list[float] = []
    if unit in TENS:
        decades = range(floor(log10(low)), ceil(log10(high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [
                step * 10.0**decade
                for decade in decades
                for step in steps
                if low <= step * 10.0**decade <= high
            ]
            if len(ticks) <= MOST_Y_TICKS:
                break
    else:
        ticks = [2.0**power for power in range(-30, 80) if low <= 2.0**power <= high]
    every = ceil(len(ticks) / MOST_Y_TICKS) or 1
    return ticks[(ticks.index(1) % every if 1 in ticks else 0) :: every]
