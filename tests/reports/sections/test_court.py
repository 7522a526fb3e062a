"""reports/sections/court.py: a line for each suspect, on a page that ranks nobody."""

from pathlib import Path

from attnbench.reports.pages.report import open_report
from attnbench.reports.sections import court
from tests.reports.fake_court import CHEATS, fake_court
from tests.reports.fake_runs import quickstart
from tests.reports.rendering import blocks_of, page_of, tables_of, text_of


def test_each_suspect_has_a_line_with_its_reason_or_its_bytes(tmp_path: Path) -> None:
    (table,) = tables_of(blocks_of(court, fake_court(tmp_path)))
    assert [line[0] for line in table.rows] == list(CHEATS)
    wrong, hidden, _ = table.rows
    assert wrong[1:3] == ("wrong result", "far from the exact result")
    assert hidden[1] == "measured"
    assert hidden[4] == "8 MiB"


def test_the_page_of_a_court_has_no_section_that_compares(tmp_path: Path) -> None:
    run = fake_court(tmp_path)
    found = [part.name for part in open_report([run]).parts]
    assert found == ["court", "refusals", "correctness", "environment", "method", "rows"]
    assert "fastest" not in text_of(page_of(run))
    other = open_report([quickstart(tmp_path / "other", lengths=(128, 256))])
    assert "court" not in [part.name for part in other.parts]
