"""`attnbench trend`, and `compare last:N` as a user meets them."""

import re
from html import unescape
from pathlib import Path

import pytest

from tests.made_runs import changed, slower
from tests.reports.comparison.test_trend import series
from tests.reports.rendering import without_scripts


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """`sdpa` becomes slower with the tenth of fourteen runs, on a machine that drifts."""
    series(tmp_path / "results", [(1, 1.12 if number >= 9 else 1, 2) for number in range(14)])
    return tmp_path / "results"


def test_the_terminal_names_the_run_the_commit_and_the_interval(here, stored):
    done = here("trend")
    assert done.returncode == 0, done.stderr
    assert "14 runs, 1 Nov 09:30:00 to 14 Nov 09:30:00: time changed in 1 of 3" in done.stdout
    (line,) = re.findall(r"10 Nov 09:30:00 .*", done.stdout)
    assert re.search(r"c0000000 +sdpa +N\s=\s256 +slower ×1\.1\d \(1\.\d\d to 1\.1\d\)", line)
    assert "Run 14 over run 1; time against fused in the same blocks" in done.stdout
    assert here("trend", "quickstart", "--only", "naive").stdout.count("sdpa") == 0
    assert here("trend", "last:1").returncode == 2


def test_a_base_is_a_name_and_a_reference_a_backend(here, stored):
    assert here("compare", "--save", "main", "20261103T093000Z-quickstart-00000002").returncode == 0
    done = here("trend", "2026*", "--base", "main", "--against", "naive")
    assert "Run 14 over run 3; time against naive in the same blocks" in done.stdout
    done = here("trend", "--against", "flash")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_page_shows_every_run_offline(here, stored):
    done = here("trend", "-o", "trend.html")
    assert done.stdout.strip() == "trend.html"
    page = unescape(Path("trend.html").read_text())
    assert "time changed in 1 of 3 cases" in page
    assert "slower from 20261110T093000Z-quickstart-00000009 (commit c0000000) on" in page
    assert "time against fused, relative to run 1" in page
    assert page.count("</svg>") >= 2  # wide and narrow
    plain = without_scripts(page)
    ids = re.findall(r'\sid="([^"]*)"', plain)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', plain)) <= set(ids)
    assert here("trend", "-o", "again.html").returncode == 0
    assert Path("again.html").read_text() == Path("trend.html").read_text()


def test_a_gate_against_the_last_runs_decides_by_what_they_differ_by(here, stored):
    newest = "20261114T093000Z-quickstart-00000003"
    gate = ("--gate", "latency: 5%, peak_bytes: 0%")
    done = here("compare", "last:4", newest, *gate)
    assert done.returncode in (0, 6), done.stderr
    assert "Base: 4 runs, 20261110T093000Z" in " ".join(done.stdout.split())
    more = here("compare", "last:4", newest, "--gate", "peak_bytes: 0%", "--format", "json")
    assert '"run": "4 runs, ' in more.stdout
    done = here("compare", "last:5", "20261103T093000Z-quickstart-00000002", *gate)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "last:5: 2 finished runs like" in done.stderr


def test_a_slower_run_fails_a_gate_against_the_last_runs(here, tmp_path):
    series(tmp_path / "results", [(1, 1, 1)] * 6, drift=0.01)
    run = tmp_path / "results" / "20261106T093000Z-quickstart-00000005"
    changed(run, "20261107T093000Z-quickstart-00000006", slower)
    done = here(
        "compare", "last:5", "20261107T093000Z-quickstart-00000006", "--gate", "latency: 5%"
    )
    assert done.returncode == 3, done.stdout
    assert "slower in 3" in done.stdout
