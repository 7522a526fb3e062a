"""reports/drawing/marks.py: markers, shortened names, and boxes that do not overlap."""

from itertools import pairwise

import pytest

from attnbench.reports.drawing.marks import coordinate, mark, shape, shortened, spread, tone
from attnbench.reports.drawing.plots import COLOURS, MARKERS

NAMES = [f"backend{place}" for place in range(12)]


def test_every_marker_and_colour_of_the_plots_has_one_here() -> None:
    assert {shape(name, NAMES) for name in NAMES} == set(range(len(MARKERS)))
    assert {tone(name, NAMES) for name in NAMES} == {str(place) for place in range(len(COLOURS))}


def test_what_is_no_backend_of_the_page_is_grey() -> None:
    assert (tone("all 3", NAMES), shape("all 3", NAMES)) == ("x", 0)


def test_markers_differ() -> None:
    drawn = [mark(number, 10, 10, 4, "f-0") for number in range(len(MARKERS))]
    assert len(set(drawn)) == len(MARKERS)


def test_a_title_is_escaped() -> None:
    assert "<b>" not in mark(1, 0, 0, 4, "f-0", "<b>")


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (1.04, "1"), (-0.01, "0"), (-1.25, "-1.2"), (-0.3, "-0.3")]
)
def test_coordinates_have_a_tenth_at_most(value: float, text: str) -> None:
    assert coordinate(value) == text


def test_long_names_are_cut() -> None:
    assert shortened("fused", 60, 14) == "fused"
    assert shortened("sdpa:efficient", 60, 14).endswith("…")


def test_boxes_stay_where_they_are_wanted_if_they_fit() -> None:
    assert spread([10, 50, 90], [20, 20, 20], 0, 100) == [10, 50, 90]


def test_boxes_that_want_one_place_share_it_evenly() -> None:
    assert spread([50, 50], [20, 20], 0, 100) == [40, 60]


def test_boxes_keep_their_order_and_never_overlap() -> None:
    wanted, sizes = [30.0, 10.0, 12.0, 95.0, 96.0], [20.0] * 5
    centres = spread(wanted, sizes, 0, 100)
    ordered = sorted(centres)
    assert all(after - before >= 20 - 1e-9 for before, after in pairwise(ordered))
    assert [centres[place] for place in (1, 2, 0, 3, 4)] == ordered
    assert ordered[0] >= 10
    assert ordered[-1] <= 90


def test_too_many_boxes_begin_at_the_top() -> None:
    assert spread([5, 5, 5], [20, 20, 20], 0, 40) == [10, 30, 50]
