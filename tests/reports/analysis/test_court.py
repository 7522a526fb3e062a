"""reports/analysis/court.py: the shipped backends beside the suspects are not suspects."""

from pathlib import Path

from attnbench.reports.analysis import court
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from tests.reports.fake_court import CHEATS, fake_court
from tests.reports.rendering import rows_of


def test_who_has_a_result_is_named_and_the_shipped_backends_are_counted_beside_them(
    tmp_path: Path,
) -> None:
    run = fake_court(tmp_path)
    meta = run_meta([read_run(run)])
    assert [row["backend"] for row in court.suspects(rows_of(run), meta)] == list(CHEATS)
    assert court.finding(rows_of(run), meta) == (
        "No result of 1 of 3 backends (1 wrong result); a result of 2: hidden_workspace and"
        " imports_late; beside them of 9 of 9 cases of fused, sdpa and naive."
    )


def test_without_a_baseline_in_the_scenario_all_are_suspects(tmp_path: Path) -> None:
    run = fake_court(tmp_path)
    assert len(court.suspects(rows_of(run), {"run": {"scenario": {}}})) == 12
