"""reports/drawing/obstacles.py: boxes that are free of lines and of other boxes."""

from attnbench.reports.drawing.obstacles import Box, Obstacles

EVERYWHERE = Box(0, 0, 100, 100)


def test_a_line_through_a_box_covers_it() -> None:
    taken = Obstacles()
    taken.add_line([(0, 0), (100, 100)])
    assert not taken.free(Box(40, 40, 60, 60))
    assert taken.free(Box(60, 10, 80, 30))


def test_a_line_that_ends_before_a_box_leaves_it_free() -> None:
    taken = Obstacles()
    taken.add_line([(0, 50), (30, 50)])
    assert taken.free(Box(40, 40, 60, 60))


def test_a_box_that_was_given_away_is_taken() -> None:
    taken = Obstacles()
    box = Box(10, 10, 30, 30)
    assert taken.first_free([box], EVERYWHERE) == box
    assert taken.first_free([box], EVERYWHERE) is None


def test_a_box_outside_is_not_taken() -> None:
    assert Obstacles().first_free([Box(90, 90, 110, 95)], EVERYWHERE) is None
