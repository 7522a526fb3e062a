"""Invisible circles over the points of a figure, with their numbers as a tooltip.

Each can be focused.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ...harness.files.printable import visible
from ..elements import Figure, Panel, Series
from ..formatting import beyond_text, count_text, number_text
from ..quantity import Quantity

HIGHEST, STEP = 0.97, 0.07  # the first cross at the upper edge, and the step to the next one
RADIUS = 7  # in points: large enough for a finger
POINTS_PER_INCH = 72


def overlay(
    canvas: Canvas,
    figure: Figure,
    axes: Sequence[Axes],
    backends: Sequence[str],
    cases: Mapping[str, int],
) -> str:
    """The circles as SVG, once the layout is done; `cases` are the cases' numbers on the page."""
    groups = []
    for panel, place in zip(figure.panels, axes, strict=True):
        stacked: dict[float, int] = {}
        for series in panel.series:
            if series.kind in ("measured", "failed") and (
                marks := _marks(canvas, place, panel, series, stacked, cases)
            ):
                known = (
                    f' data-b="{backends.index(series.backend)}"'
                    if series.backend in backends
                    else ""
                )
                groups.append(f'<g class="points"{known}>{marks}</g>')
    return "".join(groups)


def _marks(
    canvas: Canvas,
    axes: Axes,
    panel: Panel,
    series: Series,
    stacked: dict[float, int],
    cases: Mapping[str, int],
) -> str:
    marks = []
    for place, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
        if y is not None and isfinite(y):
            px, py = axes.transData.transform((x, y))
        elif series.kind == "failed":
            px, py = axes.get_xaxis_transform().transform((x, HIGHEST - STEP * stacked.get(x, 0)))
            stacked[x] = stacked.get(x, 0) + 1
        else:
            continue
        scale = POINTS_PER_INCH / canvas.dpi
        at = (
            f'cx="{px * scale:.1f}"'
            f' cy="{canvas.get_figheight() * POINTS_PER_INCH - py * scale:.1f}"'
        )
        number = cases.get(series.cases[place]) if place < len(series.cases) else None
        case = "" if number is None else f' data-case="{number}"'
        title = escape(visible(_tooltip(panel, series, place)))
        marks.append(f'<circle {at} r="{RADIUS}"{case}><title>{title}</title></circle>')
    return "".join(marks)


def _tooltip(panel: Panel, series: Series, place: int) -> str:
    """`sdpa at 1k: 3.2 ms (3.1 ms to 3.3 ms)`."""
    x, y = series.x[place], series.y[place]
    where = f"{series.backend} at {count_text(x) if x == int(x) else number_text(x)}"
    low, high = (
        bounds[place] if place < len(bounds) else None for bounds in (series.low, series.high)
    )
    beyond = beyond_text(y) if y is not None and panel.unit == "share" else ""
    value = Quantity(y, panel.unit, low, high, note=beyond)
    if series.kind == "failed":
        what = "out of memory" if panel.unit == "bytes" else "did not run"
        return f"{where}: {what}" + (f", drawn at {value}" if y is not None else "")
    return f"{where}: {value}"
