"""Runs of a suite share a page: its answers stand under the questions that they answer."""

import re
from pathlib import Path

import pytest

from attnbench.reports.pages import html, markdown
from attnbench.reports.pages.report import Report, open_report, per_question
from tests.reports.fake_runs import grid, row, write_run

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


@pytest.mark.long
def test_the_page_has_each_question_once_above_its_answers(report: Report) -> None:
    page = html.render(report)
    asked = re.findall(r'<h2 class="asked">(.*?)</h2>', page)
    assert asked == ["Which is fastest &lt;b&gt;here&lt;/b&gt;?", QUESTIONS[1]]
    assert [page.count(one) for one in asked] == [1, 1]
    first, second = (page.index(f">{one}<") for one in asked)
    cards = [found.start() for found in re.finditer(r'id="card-[a-z0-9-]+" aria', page)]
    assert [place for place in cards if place < first] == []
    assert any(first < place < second for place in cards)
    assert any(place > second for place in cards)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_markdown_has_each_question_once_above_its_answers(report: Report) -> None:
    lines = markdown.render(report).splitlines()
    asked = [line for line in lines if line.startswith("### ")]
    assert len(asked) == 2
    assert asked[1] == f"### {QUESTIONS[1]}"
    assert "<b>here</b>" not in asked[0]
    assert sum(QUESTIONS[1] in line for line in lines) == 1


@pytest.mark.long
def test_one_question_stays_at_the_top(tmp_path: Path) -> None:
    cases = grid(("naive", "sdpa"), (256, 512), (1, 8))
    page = html.render(open_report([write_run(tmp_path, cases, [row(case) for case in cases])]))
    assert 'class="asked"' not in page
    assert page.count('class="question"') == 1
