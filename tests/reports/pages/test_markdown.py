"""reports/pages/markdown.py: below the size limit of a job summary, without foreign markup."""

import re
from pathlib import Path

from attnbench.reports.pages import markdown as module
from tests.made_runs import case, many_problems, problem, row, write_run
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture
from tests.reports.rendering import markdown_of


def test_it_stays_under_the_limit_and_says_what_is_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 8000)
    text = markdown_of(many_problems(tmp_path))
    (_,) = [line for line in text.splitlines() if line.startswith("Left out for lack of")]
    assert len(text.encode()) <= 8000
    assert "How sure: " in text


def test_long_tables_are_cut_with_a_remark(tmp_path: Path) -> None:
    cases = [case("sdpa", problem(n)) for n in range(64, 64 + 300)]
    text = markdown_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert "100 more rows." in text


def test_names_add_no_markup(run: Path) -> None:
    text = markdown_of(run)
    ours = re.sub(r"</?(details|summary|br)>", "", text)
    assert "<" not in ours
    assert "\x1b" not in text
    assert HOSTILE not in text
    assert not re.search(r"(?<!\\)\[red", text)
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1
