"""reports/pages/markdown.py: below the size limit of a job summary, without foreign markup."""

import re
from pathlib import Path

import pytest

from attnbench.reports.pages import markdown as module
from tests.reports.fake_cards import fake_cards, with_cards
from tests.reports.fake_runs import case, grid, many_problems, problem, quickstart, row, write_run
from tests.reports.pages.test_hostile import HOSTILE
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture
from tests.reports.rendering import markdown_of


def test_it_has_the_answers_and_the_tables(tmp_path: Path) -> None:
    text = markdown_of(quickstart(tmp_path))
    assert text.startswith("# attnbench: quickstart\n")
    assert "## Summary" in text
    assert re.search(r"- .*sdpa is fastest at N = 8k: ", text.replace("\u00a0", " "))
    assert re.search(r"^\| .*N \| .*naive \| fused \| sdpa", text, re.MULTILINE)
    assert "**" in text  # the fastest
    assert text.count("<details>") == text.count("</details>") > 0


def test_answers_come_first_with_the_table_of_their_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, *fake_cards())
    text = markdown_of(quickstart(tmp_path, lengths=(128, 256)))
    answers = text[text.index("## Answers") : text.index("## Summary")]
    assert "**The wall**: fused with 8 heads needs 64 N² bytes" in answers
    assert "| 1k | 64 MiB | 8 MiB |" in answers
    assert "| 8 | sdpa · 2 ms · then fused ×1.31 |" in answers


@pytest.mark.parametrize(("lengths", "heads"), [((1024,), (1, 8)), ((512, 2048), (8,))])
def test_six_cases_are_short(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lengths: tuple[int, ...],
    heads: tuple[int, ...],
) -> None:
    with_cards(monkeypatch, *fake_cards())
    cases = grid(("naive", "fused", "sdpa"), lengths, heads)
    text = markdown_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert len(cases) == 6
    assert len(re.findall("^#", text, re.MULTILINE)) <= 8
    assert len(text.splitlines()) <= 120


def test_every_table_has_as_many_cells_in_each_line(tmp_path: Path) -> None:
    for block in markdown_of(quickstart(tmp_path)).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_it_stays_under_the_limit_and_says_what_is_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 8000)
    text = markdown_of(many_problems(tmp_path))
    (_,) = [line for line in text.splitlines() if line.startswith("Left out for lack of")]
    assert len(text.encode()) <= 8000
    assert "## Summary" in text


def test_long_tables_are_cut_with_a_remark(tmp_path: Path) -> None:
    cases = [case("sdpa", problem(n)) for n in range(64, 64 + 300)]
    text = markdown_of(write_run(tmp_path, cases, [row(one) for one in cases]))
    assert "100 more rows." in text


def test_names_add_no_markup(run: Path) -> None:
    text = markdown_of(run)
    ours = re.sub(r"</?(details|summary)>", "", text)
    assert "<" not in ours
    assert "\x1b" not in text
    assert HOSTILE not in text
    assert not re.search(r"(?<!\\)\[red", text)
