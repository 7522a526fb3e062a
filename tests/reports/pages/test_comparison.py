"""reports/pages/comparison.py: two runs, or the backends of one, told as any run's page tells."""

from collections.abc import Callable
from html import unescape
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from attnbench.reports.comparison.compare import (
    Comparison,
    compare_backends,
    compare_history,
    compare_runs,
)
from attnbench.reports.formatting import markdown_cell
from attnbench.reports.pages import html, markdown, terminal
from attnbench.reports.pages.comparison import page
from tests.made_runs import case, fake_run, inexact, problem
from tests.reports.pages.test_html import check_references
from tests.reports.rendering import text_of


def printed(found: Comparison) -> str:
    out = StringIO()
    console = Console(file=out, width=1000, highlight=False)
    for part in terminal.answers(page(found)):
        console.print(part)
    return out.getvalue()


@pytest.mark.parametrize(
    ("compared", "heading", "headers"),
    [
        (
            lambda runs: compare_runs(runs[0], runs[1]),
            "seed2 against seed1",
            ["new (seed2)", "base (seed1)"],
        ),
        (
            lambda runs: compare_runs(runs[0], runs[0]),
            "seed1: a run against itself",
            ["new (seed1)", "base (seed1)"],
        ),
        (
            lambda runs: compare_runs(runs[:2], runs[2:4]),
            "2 runs, seed3 to seed4 against 2 runs, seed1 to seed2",
            ["new (2 runs, seed3 to seed4)", "base (2 runs, seed1 to seed2)"],
        ),
        (
            lambda runs: compare_history(runs[:4], 4, runs[4]),
            "seed5 against 4 runs, seed4 to seed1",
            ["new (seed5)", "base (4 runs, seed4 to seed1)"],
        ),
        (
            lambda runs: compare_backends(runs[0], "fused"),
            "seed1: every backend against fused",
            [""],
        ),
    ],
    ids=["two", "itself", "turns", "history", "backends"],
)
def test_what_is_compared_is_named_shortly_and_every_renderer_says_the_same(
    compared: Callable[[list[Path]], Comparison],
    heading: str,
    headers: list[str],
    tmp_path: Path,
) -> None:
    found = compared([fake_run(tmp_path, seed) for seed in range(1, 6)])
    report = page(found)
    assert report.heading == heading
    assert [title for title, _ in report.headers.values()] == headers
    text = html.render(report)
    check_references(text)
    assert text == html.render(page(found))
    assert "Only the mean ratios average over problems" in text
    in_markdown, in_terminal = markdown.render(report), printed(found)
    assert "1a2b3c4d" not in in_markdown + in_terminal
    for said in (heading, report.answer, *report.lines, "geometric mean"):
        assert said in unescape(text_of(text))
        assert markdown_cell(said) in in_markdown
        assert said in in_terminal


def test_with_many_cases_the_table_stands_alone(tmp_path: Path) -> None:
    cases = [case("sdpa", problem(n)) for n in range(16, 16 + 41)]
    for count, pictures in ((40, 1), (41, 0)):
        runs = [fake_run(tmp_path / str(count), seed, planned=cases[:count]) for seed in (2, 3)]
        text = html.render(page(compare_runs(*runs)))
        assert text.count('<div class="drawn">') == pictures
        assert text.count("<tr>") > count


def test_each_case_of_an_inexact_backend_has_its_own_error(tmp_path: Path) -> None:
    text = printed(compare_backends(inexact(tmp_path, lengths=(256, 512)), "sdpa"))
    assert "rnn ≠ (not attention)" in text
    assert text.count("linformer ~ (approximate, error ") == 2
    assert "so not the same result: " in text
