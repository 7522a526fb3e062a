"""reports/pages/terminal.py: findings and tables as text, whatever names contain."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from tests.made_runs import quickstart
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture


def printed(path: Path, names: tuple[str, ...] = ("trust",)) -> str:
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in terminal.render(open_report([path]), names):
        console.print(part)
    return out.getvalue()


def test_the_end_of_a_log_has_its_lines(tmp_path: Path) -> None:
    text = printed(quickstart(tmp_path), ("refusals",))
    assert "\nFatal Python error: Segmentation fault\n  File " in text
    assert "\\x0a" not in text
