"""reports/pages/terminal.py: findings and tables as text, whatever names contain."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from attnbench.reports.pages.terminal import terminal_summary
from tests.reports.fake_cards import fake_cards, with_cards
from tests.reports.fake_runs import quickstart
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture

NAME = "20261121T093000Z-quickstart-1a2b3c4d"  # of the fake run, which is not finished


def printed(path: Path, names: tuple[str, ...] = terminal.USUAL) -> str:
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in terminal.render(open_report([path]), names):
        console.print(part)
    return out.getvalue()


def test_answers_are_there_without_colour_and_without_the_tables_behind_them(
    tmp_path: Path,
) -> None:
    text = printed(quickstart(tmp_path))
    assert "sdpa is fastest" in text
    assert "\x1b" not in text
    assert "Cost of heads" not in text
    assert "All rows" not in text


def test_sections_are_those_of_the_page(tmp_path: Path) -> None:
    assert set(terminal.USUAL) <= set(terminal.section_names())
    text = printed(quickstart(tmp_path), ("rows",))
    assert "All rows" in text
    assert "Summary" not in text


def test_the_end_of_a_log_has_its_lines(tmp_path: Path) -> None:
    text = printed(quickstart(tmp_path), ("refusals",))
    assert "\nFatal Python error: Segmentation fault\n  File " in text
    assert "\\x0a" not in text


def test_the_answers_come_first_and_what_is_lacking_is_told_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cards(monkeypatch, *fake_cards())
    text = printed(quickstart(tmp_path))
    order = ["quickstart", "Trust: 5 good", "The wall", "64 MiB", "Who is fastest", "Summary"]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert "No case has utilization windows" not in text
    assert "No case has utilization windows" in printed(
        quickstart(tmp_path / "alone"), ("utilization",)
    )


def test_a_run_ends_with_the_sentences_of_the_cards_and_repeats_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = fake_cards()
    with_cards(monkeypatch, *cards)
    lines = terminal_summary(open_report([quickstart(tmp_path)]))
    assert lines[: len(cards)] == [card.sentence for card in cards]
    assert not any("is fastest at" in line for line in lines)


def test_hostile_names_are_text(run: Path) -> None:
    text = printed(run, tuple(terminal.section_names()))
    assert "[red]x[/red]" in text  # not taken for markup
    assert "\x1b[31m" not in text
    assert "\\x1b" in text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", NAME), 0),
        (("show", NAME, "--all"), 0),
        (("show", NAME, "--sections", "foo"), 2),
        (("show", NAME, "--all", "--sections", "heads"), 2),
        (("show", "x"), 2),
    ],
)
def test_the_command(attnbench, tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    assert quickstart(tmp_path / "results").name == NAME
    done = attnbench(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == (0 if code == 0 else 1)
    assert ("sdpa is fastest" in done.stdout) is (code == 0)
    assert ("Cost of heads" in done.stdout) is ("--all" in arguments and code == 0)


def test_a_broken_row_is_one_line_and_exit_code_2(attnbench, tmp_path: Path) -> None:
    folder = quickstart(tmp_path / "results")
    with (folder / "rows.jsonl").open("a") as file:
        file.write('{"schema": 1, "kind": "latency", "case": "x"}\n')
    for verb in ("show", "report", "export"):
        done = attnbench(verb, folder)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "rows.jsonl:" in done.stderr
