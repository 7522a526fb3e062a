"""reports/drawing/picture.py: every picture in two versions, the wall on two scales."""

import re

from attnbench.reports.drawing.picture import drawn
from attnbench.reports.elements import Table
from tests.reports.drawing.test_dot_plot import PLOT
from tests.reports.drawing.test_wall_chart import QUICKSTART

BACKENDS = ("naive", "fused", "sdpa")


def test_the_wall_has_a_switch_that_needs_no_script() -> None:
    found = drawn(QUICKSTART, BACKENDS, "card-wall")
    assert found is not None
    for version, name in ((found.wide, "wide"), (found.narrow, "narrow")):
        assert re.findall(r'id="([^"]*)"', version) == [
            f"card-wall-{name}-log",
            f"card-wall-{name}-linear",
        ]
        assert re.findall(r'for="([^"]*)"', version) == re.findall(r'id="([^"]*)"', version)
        assert version.count(" checked") == 1
        assert version.count("<svg ") == 2
        assert "<script" not in version


def test_ids_of_two_cards_differ() -> None:
    ids = [
        name
        for card in ("card-wall", "card-memory")
        for version in drawn(QUICKSTART, BACKENDS, card) or ()
        for name in re.findall(r'id="([^"]*)"', version)
    ]
    assert len(ids) == len(set(ids)) == 8


def test_dots_are_drawn_for_wide_and_for_narrow_pages() -> None:
    found = drawn(PLOT, BACKENDS, "card-heads")
    assert found is not None
    assert 'class="pic dots wide"' in found.wide
    assert 'class="pic dots narrow"' in found.narrow


def test_tables_are_left_to_the_page() -> None:
    assert drawn(Table(title="", columns=("a",), rows=()), BACKENDS, "card-fastest") is None


def test_every_class_of_a_drawing_is_in_the_style_sheet() -> None:
    from importlib.resources import files

    css = files("attnbench.reports.pages").joinpath("pictures.css").read_text(encoding="utf-8")
    every = [*(drawn(QUICKSTART, BACKENDS, "a") or ()), *(drawn(PLOT, BACKENDS, "b") or ())]
    used = {
        name
        for text in every
        for names in re.findall(r'class="([^"]*)"', text)
        for name in names.split()
    }
    plain = {"wall", "dots", "num", "wd"}  # named for readers, drawn as text is
    assert {name for name in used - plain if f".{name}" not in css} == set()
