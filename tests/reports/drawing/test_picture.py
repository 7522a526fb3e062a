"""reports/drawing/picture.py: every picture in two versions, the wall on two scales."""

import re
from importlib.resources import files

from attnbench.reports.drawing.picture import drawn
from tests.reports.drawing.test_chart import figure_of, line, times
from tests.reports.drawing.test_dot_plot import PLOT
from tests.reports.drawing.test_maps import maps_of
from tests.reports.drawing.test_wall_chart import QUICKSTART

BACKENDS = ("naive", "fused", "sdpa")


def test_ids_of_two_cards_differ() -> None:
    ids = [
        name
        for card in ("card-wall", "card-memory")
        for name in re.findall(r'id="([^"]*)"', drawn(QUICKSTART, BACKENDS, card, {}))
    ]
    assert len(ids) == len(set(ids)) == 4


def test_every_class_of_a_drawing_is_in_the_style_sheet() -> None:
    css = files("attnbench.reports.pages").joinpath("pictures.css").read_text(encoding="utf-8")
    figure = figure_of(
        times(line("sdpa", 1, 2, low=(1, 1), high=(2, 3), busy=(True, False)), line=(2, "a line")),
        times(line("sdpa", 1, 2, kind="formula"), line("a", None, kind="failed"), unit="bytes"),
    )
    pictures = (QUICKSTART, PLOT, figure, maps_of(2))
    every = [drawn(one, BACKENDS, f"p{place}", {}) for place, one in enumerate(pictures)]
    used = set(" ".join(re.findall(r'class="([^"]*)"', " ".join(every))).split())
    plain = {
        "wall",
        "dots",
        "num",
        "wd",
        "chart",
        "map",
        "scale",
    }  # named for readers, drawn as text is
    assert {name for name in used - plain if f".{name}" not in css} == set()
