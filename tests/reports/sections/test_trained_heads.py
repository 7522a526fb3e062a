"""reports/sections/trained_heads.py: the answers, in HTML, Markdown and the terminal."""

from pathlib import Path

from attnbench.reports.elements import Figure
from attnbench.reports.sections import trained_heads
from tests.reports.fake_trainings import trainings, with_trainings
from tests.reports.rendering import blocks_of


def test_bounds_of_shares_stay_between_nothing_and_all(tmp_path: Path) -> None:
    shaky = trainings({"recall": {1: [1.0, 0.6, 1.0, 1.0, 1.0], 2: [1.0] * 5}})
    blocks = blocks_of(trained_heads, with_trainings(tmp_path, shaky))
    figure = next(one for one in blocks if isinstance(one, Figure))
    for series in (one for panel in figure.panels for one in panel.series):
        assert all(0 <= bound <= 1 for bound in (*series.low, *series.high) if bound is not None)
