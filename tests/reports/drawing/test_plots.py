"""reports/drawing/plots.py: crosses at the upper edge take no room if there are none."""

from typing import Any

import pytest

from attnbench.reports.drawing import plots
from attnbench.reports.elements import Figure, Panel, Series, Table

pytestmark = pytest.mark.long


def figure_of(*panels: Panel, **fields: Any) -> Figure:
    empty = Table(title="", columns=(), rows=())
    return Figure(title="", caption="", panels=panels, table=empty, **fields)


def small(title: str, *names: str, most: float = 2.0) -> Panel:
    return Panel(
        series=tuple(
            Series(backend=name, kind="measured", x=(1.0, 2.0), y=(1.0, most)) for name in names
        ),
        x_label="noise",
        y_label="right",
        unit="plain",
        y_scale="linear",
        title=title,
    )


def test_series_that_are_no_backends_have_colours_and_a_legend_of_their_own() -> None:
    names = ("1 head", "fused")
    figure = figure_of(small("one", *names), names=names)
    text = plots.svg(figure, ("sdpa", "fused"), "f1", {})
    assert text.count("var(--b0)") > 0 < text.count("var(--b1)")
    assert "data-b=" not in text.partition('class="points"')[0], "the page's legend is not about it"
    of_page = plots.svg(figure_of(small("one", *names)), ("sdpa", "fused"), "f1", {})
    assert "1 head" not in of_page.partition("</desc>")[2].partition("<title>")[0]
    assert len(text) > len(of_page)
