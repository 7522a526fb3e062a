"""reports/drawing/lines.py: panels with names at the ends of lines, and all values at an x."""

from math import inf, nan

import pytest

from attnbench.reports.elements import Scale
from tests.reports.drawing.drawings import (
    QUICKSTART,
    WIDTHS,
    check_texts,
    contents,
    figure_of,
    line,
    marks,
    names,
    need,
    parts,
    said,
    times,
    wall,
    ways,
)

LONG = ("attend@my_attention", "sdpa:flash", "hf:flex_attention", "linformer[rank=32]", "fused")
SCALES: tuple[Scale, ...] = ("log", "linear")
NAIVE, ORANGE, CARD, ZONE = "var(--b0)", "var(--b1)", "var(--p-card)", "var(--p-zone)"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("panels", [1, 2, 4])
def test_long_names_are_whole_and_cover_nothing(width: str, panels: int) -> None:
    panel = times(*(line(name, 1, 4, 16) for name in LONG))
    for svg in parts(figure_of(*[panel] * panels), width):
        check_texts(svg)
        assert all(name in names(svg) for name in LONG)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_covers_another_with_ten_backends(width: str, scale: Scale) -> None:
    lines = [need(f"backend:{place}", 0, 10240 + 200 * place) for place in range(9)]
    (svg,) = parts(wall([*lines, need("fused", 64)]), width, scale)
    check_texts(svg)
    assert {f"backend:{place}" for place in range(9)} <= set(contents(svg))
    for one in parts(QUICKSTART, width, scale):
        check_texts(one)


def test_names_of_many_lines_are_a_list_in_their_order() -> None:
    values = dict(zip(LONG, (3, 1, 2, 5, 4), strict=True))
    (svg,) = parts(figure_of(times(*(line(name, 1, value) for name, value in values.items()))))
    places = [float(one.get("y", "")) for one in svg.iter("text") if one.get("font-weight")]
    assert names(svg) == "".join(LONG)
    assert places == sorted(places)


def test_every_value_is_said_at_its_x_with_its_interval() -> None:
    low, high = (3.0, 6.0, None), (5.0, 9.0, None)
    sdpa = line("sdpa", 4, 8, 16, low=low, high=high, notes=("", ", processor 3 ms", ""))
    fused = line("fused", 2, None, 5, busy=(False, False, True))
    failed = line("fused", 3, x=(256.0,), kind="failed")
    (svg,) = parts(figure_of(times(sdpa, fused, failed)))
    first, second, third = (one.text or "" for one in svg.iter("title"))
    assert first.splitlines()[0] == "sequence length N = 128"
    assert first.splitlines()[1:] == ["sdpa 4.00 ms (3.00 ms to 5.00 ms)", "fused 2.00 ms"]
    assert "sdpa 8.00 ms (6.00 ms to 9.00 ms), processor 3 ms" in second
    assert "fused 3.00 ms, did not run" in second
    assert third.splitlines()[1:] == ["sdpa 16.0 ms", "fused 5.00 ms, while other work ran"]


def test_panels_that_are_compared_have_the_same_axes() -> None:
    small, large = times(line("a", 1, 2)), times(line("a", 1, 2, 4, 1000))
    first, second = parts(figure_of(small, large))
    grid = {"stroke": "var(--p-grid)"}
    assert [y for _, y in ways(first, **grid)[0]] == [y for _, y in ways(second, **grid)[0]]
    apart, _ = parts(figure_of(small, large, same_y=False))
    assert "1 s" in contents(first)
    assert "1 s" not in contents(apart)


def test_what_other_work_disturbed_is_hollow_and_says_so() -> None:
    (svg,) = parts(figure_of(times(line("naive", 1, 2, busy=(True, False)))))
    assert len(marks(svg, stroke=NAIVE, fill=CARD)) == len(marks(svg, fill=NAIVE)) == 1
    assert "while other work ran" in contents(svg)


@pytest.mark.parametrize("count", [1, 2])
def test_a_band_reaches_from_the_lower_to_the_upper_bounds(count: int) -> None:
    values, low, high = (4, 8)[:count], (2, 4)[:count], (8, 16)[:count]
    (svg,) = parts(figure_of(times(line("naive", *values, low=low, high=high))))
    (band,) = ways(svg, fill=NAIVE, opacity="0.2")
    places = [y for _, y in marks(svg, fill=NAIVE)]
    assert len(places) == count
    assert min(y for _, y in band) < min(places)
    assert max(places) < max(y for _, y in band)


def test_lines_that_are_hidden_by_others_are_wider() -> None:
    (svg,) = parts(figure_of(times(line("naive", 1, 2, 4), line("fused", 1, 2, 4))))
    assert ways(svg, stroke=NAIVE, stroke_width="6")
    assert ways(svg, stroke=ORANGE, stroke_width="2.2")


def test_crosses_lie_beyond_the_budget_line_and_one_panel_says_what_they_mean() -> None:
    first, second = parts(QUICKSTART, scale="log")
    ((_, budget), *_) = ways(first, stroke="var(--p-wall)")[0]
    solid = [marks(one, stroke_width="3") for one in (first, second)]
    hollow = [marks(one, fill=ZONE) for one in (first, second)]
    assert [len(some) for some in solid] == [2 + 1, 2]  # and one of the key
    assert [len(some) for some in hollow] == [1 + 1, 0]
    plotted = [y for _, y in (*solid[0], *hollow[0]) if y < 290]
    assert len(plotted) == 3
    assert max(plotted) < budget
    keys = {"out of memory", "not tried", "formula"}
    assert keys <= set(contents(first))
    assert not keys & set(contents(second))
    assert len(marks(first, fill=CARD, stroke_width="2")) == 2  # where the lines meet the limit
    assert "fused 4.1 GiB, not tried" in said(first)


def test_crosses_without_a_value_stand_above_each_other() -> None:
    failed = (line(name, None, None, kind="failed") for name in ("naive", "fused"))
    (svg,) = parts(figure_of(times(line("sdpa", 1, 2), *failed)))
    first, second = marks(svg, stroke=NAIVE), marks(svg, stroke=ORANGE)
    assert [x for x, _ in first] == [x for x, _ in second]
    assert all(y + 11 < below for (_, y), (_, below) in zip(first, second, strict=True))


def test_a_line_is_cut_where_it_leaves_linear_axes_and_a_tip_shows_that_it_goes_on() -> None:
    first, _ = parts(QUICKSTART, scale="linear")
    dashed = [one for one in first.iter("path") if one.get("stroke-dasharray")]
    assert all(one.get("clip-path") for one in dashed[:2])
    assert len([one for one in ways(first, stroke=ORANGE) if len(one) == 3]) == 2


def test_absurd_values_and_none_are_drawn() -> None:
    for values in ((1e-320, 1e308), (inf, None), (0.0, nan), (5.0,)):
        for scale in SCALES:
            figure = figure_of(times(line("a", *values), y_scale=scale))
            assert parts(figure)[0].get("role") == "img"
    assert parts(figure_of(times()))[0].get("role") == "img"


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
    (svg,) = parts(figure_of(times(line("a", most / 65536, most), unit=unit)))
    shown = set(contents(svg))
    assert wanted <= shown
    assert not any(text.startswith("0.000") for text in shown)
