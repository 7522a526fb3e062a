"""reports/drawing/wall_axes.py: ticks of bytes, and a zone that has room for words."""

import pytest

from attnbench.reports.drawing.wall_axes import Axes, axes_of, size_ticks
from attnbench.reports.elements import Scale
from tests.reports.drawing.test_wall_chart import MIB, QUICKSTART, chart, line


def axes(budget: int | None, scale: Scale = "log") -> Axes:
    of = chart([line("fused", 8)], budget=budget)
    return axes_of(of, of.panels[0][1], scale, 280)


def test_the_unit_stands_where_it_changes() -> None:
    found = axes_of(QUICKSTART, QUICKSTART.panels[0][1], "log", 280)
    assert [words for _, words in size_ticks(found)] == ["4 MiB", "16", "64", "256", "1 GiB", "4"]


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_the_axis_reaches_beyond_the_budget(scale: Scale) -> None:
    assert axes(512 * MIB, scale).high > 512 * MIB


def test_a_budget_far_above_every_need_does_not_flatten_linear_axes() -> None:
    assert axes(1 << 40, "linear").high < 1 << 30


def test_twice_the_length_is_a_step_of_one_width_on_logarithmic_axes() -> None:
    found = axes(512 * MIB)
    steps = [found.x(2 * n, 0, 100) - found.x(n, 0, 100) for n in (256, 1024, 4096)]
    assert steps == [pytest.approx(20)] * 3
