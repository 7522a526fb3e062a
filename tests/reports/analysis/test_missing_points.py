"""reports/analysis/missing_points.py: cases without a point are named once."""

from pathlib import Path

from attnbench.reports.analysis.missing_points import missing_points
from tests.reports.fake_runs import case, problem
from tests.reports.rendering import rows_with_statuses


def test_what_a_figure_leaves_out_is_named_once(tmp_path: Path) -> None:
    cases = [(case("a", problem(128)), "ok"), (case("a", problem(1024)), "crashed")]
    cases += [(case("b", problem(n)), "unsupported") for n in (128, 1024)]
    rows = rows_with_statuses(tmp_path, *cases)
    assert missing_points(rows, rows[:1]) == ". Without a point: a at 1k (crashed); b (unsupported)"
    assert missing_points(rows, rows) == ""
