"""Draws lanes: what happens at the same time, with one scale for all panels."""

from dataclasses import dataclass
from math import floor, log10
from typing import Literal

from ..elements import Lane, LaneChart, LanePanel, Span
from .marks import line, rect, shortened, svg, text, text_width

Width = Literal["wide", "narrow"]
HEADING_PX = 14.0
LANE_PX, HEAD_PX, AXIS_PX, LEGEND_PX = 22.0, 44.0, 40.0, 28.0
MOST_TICKS = 5
INSET = 1.0  # of a span, so that two spans of one look are told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Measures in units of the view box. Names of lanes stand before `labels`, or above lanes."""

    width: float
    labels: float
    notes: float
    pitch: float
    text_px: float


LAYOUTS: dict[Width, Layout] = {
    "wide": Layout(width=556, labels=104, notes=46, pitch=28, text_px=12.5),
    "narrow": Layout(width=326, labels=1, notes=0, pitch=46, text_px=14),
}


def draw(chart: LaneChart, width: Width) -> str:
    """SVG text."""
    layout = LAYOUTS[width]
    y, parts = 0.0, []
    legend, y = _legend(chart, layout)
    parts.append(legend)
    grid_top = y
    panels = []
    for panel in chart.panels:
        panels.append(_panel(panel, chart, layout, y))
        y += HEAD_PX + layout.pitch * len(panel.lanes) + 6
    parts += [_axis(chart, layout, grid_top + HEAD_PX, y), *panels]
    return svg(layout.width, y + AXIS_PX, f"lanes {width}", chart.description, "".join(parts))


def _pixels(chart: LaneChart, layout: Layout) -> float:
    return (layout.width - layout.labels - layout.notes - 1) / chart.end


def _legend(chart: LaneChart, layout: Layout) -> tuple[str, float]:
    """The looks with their words, and the height of their lines."""
    x, y, parts = 0.0, 0.0, []
    for look, word in chart.legend:
        wide = 22 + text_width(word, layout.text_px) + 14
        if x and x + wide > layout.width:
            x, y = 0.0, y + 20
        parts.append(rect(x + 1, y + 2, 14, 12, f"k-{look}"))
        parts.append(text(x + 21, y + 12.5, word, "key"))
        x += wide
    return "".join(parts), y + LEGEND_PX


def _panel(panel: LanePanel, chart: LaneChart, layout: Layout, top: float) -> str:
    parts = [text(0, top + 15, shortened(panel.heading, layout.width, HEADING_PX), "pt")]
    parts.append(text(0, top + 33, shortened(panel.remark, layout.width, 13.0, 0.6), "sub"))
    for place, lane in enumerate(panel.lanes):
        parts.append(_lane(lane, chart, layout, top + HEAD_PX + layout.pitch * place))
    return "".join(parts)


def _lane(lane: Lane, chart: LaneChart, layout: Layout, top: float) -> str:
    above = layout.notes == 0
    upper = top + (layout.pitch - LANE_PX if above else 0)
    note = f"{lane.label}: {lane.note}" if above and lane.note else lane.label
    at = (0, upper - 5) if above else (0, upper + LANE_PX / 2 + 4.5)
    parts = [text(*at, note, "key")]
    pixels = _pixels(chart, layout)
    end = layout.labels + chart.end * pixels
    parts.append(rect(layout.labels, upper, end - layout.labels, LANE_PX, "lane"))
    parts += [_span(one, layout, upper, pixels, chart.end) for one in lane.spans]
    if lane.note and not above:
        parts.append(text(end + 6, upper + LANE_PX / 2 + 4.5, lane.note, "key"))
    return "".join(parts)


def _span(span: Span, layout: Layout, top: float, pixels: float, most: float) -> str:
    start, end = max(span.start, 0.0), min(span.end, most)
    if end <= start:
        return ""
    x, width = layout.labels + start * pixels, (end - start) * pixels
    inset = min(INSET, width / 4)
    parts = [rect(x + inset, top + 1, width - 2 * inset, LANE_PX - 2, f"k-{span.look}")]
    if span.label and text_width(span.label, layout.text_px) + 4 <= width:
        on = "on" if span.look == "product" else "in"
        parts.append(text(x + width / 2, top + LANE_PX / 2 + 4.5, span.label, on, "middle"))
    return "".join(parts)


def _axis(chart: LaneChart, layout: Layout, top: float, bottom: float) -> str:
    pixels, parts = _pixels(chart, layout), []
    step = tick_step(chart.end)
    for number in range(floor(chart.end / step) + 1):
        x = layout.labels + number * step * pixels
        parts.append(line(x, top, x, bottom, "gl"))
        number_text = f"{number * step:,.0f}"
        half = text_width(number_text, layout.text_px) / 2
        anchor = "start" if x < half else "end" if x + half > layout.width else "middle"
        parts.append(text(x, bottom + 15, number_text, "tk", anchor))
    end = layout.labels + chart.end * pixels
    parts.append(text(end, bottom + 33, chart.x_label, "src", "end"))
    return "".join(parts)


def tick_step(end: float) -> float:
    """1, 2 or 5 times a power of ten, with at most MOST_TICKS steps to `end`."""
    unit = 10.0 ** floor(log10(end / MOST_TICKS))
    return next(unit * factor for factor in (1, 2, 5, 10) if end / (unit * factor) <= MOST_TICKS)
