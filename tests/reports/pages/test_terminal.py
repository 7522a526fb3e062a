"""reports/pages/terminal.py: findings and tables as text, whatever names contain."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from attnbench.reports.pages import terminal
from attnbench.reports.pages.report import open_report
from tests.conftest import ROOT
from tests.made_runs import case, problem, quickstart, row, write_run
from tests.reports.pages.test_hostile import run as run  # noqa: PLC0414 - a fixture


def printed(path: Path, names: tuple[str, ...] = ("trust",)) -> str:
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in terminal.render(open_report([path]), names):
        console.print(part)
    return out.getvalue()


def test_all_sections_of_quickstarts_run_are_120_lines_and_name_long_tables() -> None:
    run = ROOT / "results" / "reference" / "cpu-20261124-quickstart"
    report, names = open_report([run]), terminal.section_names()
    out = StringIO()
    console = Console(file=out, width=1000, highlight=False)
    for part in terminal.render(report, names, whole=False):
        console.print(part)
    text = out.getvalue()
    assert text.count("\n") <= 120
    assert "\nAll cases: 36 rows, with --sections rows\n" in text
    told = [report.part(one, alone=False) for one in report.subjects]
    assert all(f"\n{one.title}\n" in text for one in told if one.blocks and one.has_data)


def test_the_end_of_a_log_has_its_lines(tmp_path: Path) -> None:
    text = printed(quickstart(tmp_path), ("refusals",))
    assert "\nFatal Python error: Segmentation fault\n  File " in text
    assert "\\x0a" not in text


def test_in_short_the_only_backend_has_its_time(tmp_path: Path) -> None:
    """It said "Time: At N = 512, B = 1, d_model = 64, h = 1." and no time."""
    sizes = [{"heads": heads, "batch": 1, "d_model": 64} for heads in (1, 8)]
    sizes += [{"heads": 1, "batch": 2, "d_model": 128}]
    cases = [case("sdpa", problem(512, **one)) for one in sizes]
    run = write_run(tmp_path, cases, [row(one, block_ms=[[[1.0, 1.01]]]) for one in cases])
    said = [str(one).replace("\xa0", " ") for one in terminal.render_briefly(open_report([run]))]
    (time,) = [line for line in said if line.startswith("Time: sdpa")]
    assert time == "Time: sdpa takes 1.00 ms at N = 512, B = 1, d_model = 64, h = 8."
