"""reports/pages/figures.py: the page's figures as separate files."""

from pathlib import Path

import pytest

from attnbench.reports.pages.figures import write_figures
from attnbench.reports.pages.report import open_report
from tests.made_runs import quickstart
from tests.reports.rendering import page_of

pytestmark = pytest.mark.long


def test_every_figure_of_the_page_is_a_file(tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(512, 2048, 8192))
    first = write_figures(open_report([run]), tmp_path / "figures")
    assert {path.suffix for path in first} == {".svg", ".png"}
    assert len(first) == 2 * (page_of(run).count("<figure") + 3)  # and those of cards
    for path in first:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")
    before = {path: path.read_bytes() for path in first}
    assert {
        path: path.read_bytes() for path in write_figures(open_report([run]), tmp_path / "figures")
    } == before
