"""reports/drawing/chart.py: panels with names at the ends of lines, and all values at an x."""

from typing import Any
from xml.etree import ElementTree

import pytest

from attnbench.reports.drawing.chart import draw
from attnbench.reports.drawing.palette import places_of
from attnbench.reports.elements import Figure, Panel, Series, Table
from tests.reports.drawing.test_wall_chart import check_texts, classed, contents, ys

LONG = ("attend@my_attention", "sdpa:flash", "hf:flex_attention", "linformer[rank=32]", "fused")
WIDTHS = ("wide", "narrow")


def figure_of(*panels: Panel, **fields: Any) -> Figure:
    empty = Table(title="", columns=(), rows=())
    return Figure(title="", caption="", panels=panels, table=empty, **fields)


def line(name: str, *values: float | None, **fields: Any) -> Series:
    xs = tuple(float(128 << place) for place in range(len(values)))
    return Series(**{"backend": name, "kind": "measured", "x": xs, "y": values} | fields)


def times(*series: Series, **fields: Any) -> Panel:
    labels = {"x_label": "sequence length N (1k = 1024)", "y_label": "latency", "unit": "ms"}
    return Panel(**labels | {"series": series} | fields)


def drawn(figure: Figure, width: Any = "wide", cases: dict[str, int] | None = None) -> list[Any]:
    names = [one.backend for panel in figure.panels for one in panel.series]
    return [
        ElementTree.fromstring(one) for one in draw(figure, places_of(names), width, cases or {})
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("panels", [1, 2, 4])
def test_long_names_are_whole_and_cover_nothing(width: str, panels: int) -> None:
    panel = times(*(line(name, 1, 4, 16) for name in LONG))
    for drawing in drawn(figure_of(*[panel] * panels), width):
        check_texts(drawing)
        said = "".join(one.text or "" for one in classed(drawing, "lb"))
        assert all(name in said for name in LONG)
        assert "…" not in said


def test_panels_that_are_compared_have_the_same_axes() -> None:
    small, large = times(line("a", 1, 2)), times(line("a", 1, 2, 4, 1000))
    first, second = drawn(figure_of(small, large))
    assert [one.get("y") for one in classed(first, "tk")][:5] == [
        one.get("y") for one in classed(second, "tk")
    ][:5]
    apart, _ = drawn(figure_of(small, large, same_y=False))
    assert "1 s" in contents(first)
    assert "1 s" not in contents(apart)


def test_what_other_work_disturbed_is_hollow_and_says_so() -> None:
    panel = times(line("sdpa", 1, 2, busy=(True, False)))
    (drawing,) = drawn(figure_of(panel))
    assert len(classed(drawing, "busy")) == 2  # one of the line, one of the key
    assert "while other work ran" in contents(drawing)


def test_a_band_reaches_from_the_lower_to_the_upper_bounds() -> None:
    panel = times(line("sdpa", 4, 8, low=(2, 4), high=(8, 16)))
    (drawing,) = drawn(figure_of(panel))
    (band,) = classed(drawing, "iv")
    (way,) = classed(drawing, "ln")
    assert min(ys(band)) < min(ys(way)) < max(ys(way)) < max(ys(band))


def test_absurd_values_and_none_are_drawn() -> None:
    for values in ((1e-320, 1e308), (float("inf"), None), (0.0, float("nan")), (5.0,)):
        for scale in ("log", "linear"):
            figure = figure_of(times(line("a", *values), y_scale=scale))
            assert drawn(figure)[0].get("role") == "img"
    assert drawn(figure_of(times()))[0].get("role") == "img"


@pytest.mark.parametrize(
    ("unit", "most", "wanted"),
    [
        ("ratio", 64, {"×1", "×64"}),
        ("bytes", 1 << 30, {"1 GiB", "32 KiB"}),
        ("share", 1, {"100 %", "1 %"}),
        ("plain", 1, {"1", "10⁻⁴"}),
    ],
)
def test_ticks_are_plain(unit: str, most: float, wanted: set[str]) -> None:
    (drawing,) = drawn(figure_of(times(line("a", most / 65536, most), unit=unit)))
    shown = set(contents(drawing))
    assert wanted <= shown
    assert not any(text.startswith("0.000") for text in shown)
