"""Intervals that are too wide to decide anything are said to be, in every text; files of numbers
keep them.
"""

import json
import re
from pathlib import Path

import pytest

from attnbench.reports.comparison.compare import compare_backends
from attnbench.reports.comparison.document import as_json
from attnbench.reports.pages import html, markdown
from attnbench.reports.pages.comparison import page
from attnbench.reports.pages.report import open_report
from tests.made_runs import case, problem, row, write_run

UNCERTAIN = "uncertain by more than 10 times"
FAR = re.compile(r"e-\d\d|\d{5,} times|to \d{4,}\b")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two blocks each, which disagree 50 times: Student t of them spans many powers of ten."""
    planned = [case(name, problem(n)) for n in (256, 512) for name in ("fused", "sdpa")]
    blocks = {"fused": [[1.0], [50.0]], "sdpa": [[50.0], [1.2]]}
    rows = [
        row(one, block_ms=[blocks[one["backend"]]], processes=1, half_width_ratio=25.0)
        for one in planned
    ]
    return write_run(tmp_path, planned, rows)


def test_a_comparison_says_that_it_is_uncertain_and_its_json_keeps_the_numbers(run: Path) -> None:
    comparison = compare_backends(run, "fused")
    found = markdown.render(page(comparison))
    assert not FAR.search(found), found
    assert found.count(UNCERTAIN) == 2
    latencies = [
        one for one in json.loads(as_json(comparison))["cases"] if one["metric"] == "latency"
    ]
    assert len(latencies) == 2
    assert all(one["low"] < 0.001 and one["high"] > 1000 for one in latencies)


def test_so_does_the_page(run: Path) -> None:
    page = html.render(open_report([run]))
    titles = " ".join(re.findall(r"<title>(.*?)</title>", page, flags=re.DOTALL))
    shown = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    for written in (titles, shown):
        assert UNCERTAIN in written
        assert not re.search(r"\(\S+ to \d\S*e\+\d\d", written)
