"""Runs of a suite share a page: its answers stand under the questions that they answer."""

from pathlib import Path

import pytest

from attnbench.reports.pages.report import Report, open_report, per_question
from tests.made_runs import grid, row, write_run

QUESTIONS = ("Which is fastest <b>here</b>?", "What do heads cost?")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Three runs of two questions: the first one is asked again after the second."""
    paths = []
    for number, asked in enumerate((*QUESTIONS, QUESTIONS[0])):
        cases = grid(("naive", "sdpa"), (256, 512), (1, 8), d_model=512 * (1 + number))
        scenario = {"name": f"part{number}", "question": asked, "backends": ["naive", "sdpa"]}
        rows = [row(case) for case in cases]
        paths.append(write_run(tmp_path, cases, rows, name=f"part{number}", scenario=scenario))
    return open_report(paths)


def test_runs_are_grouped_by_question_in_the_order_of_the_suite(report: Report) -> None:
    groups = per_question(report)
    names = [[run.path.name.split("-")[1] for run in group.runs] for group in groups]
    assert names == [["part0", "part2"], ["part1"]]
    assert [len(group.frame) for group in groups] == [16, 8]
    assert [set(group.frame["run"]) for group in groups] == [set(group.meta) for group in groups]
    assert [group.backends for group in groups] == [report.backends] * 2
    assert groups[1].title == f"part1: {QUESTIONS[1]}"
