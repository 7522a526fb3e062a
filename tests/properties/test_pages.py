"""Every part of a page renders what is made of little: nothing, one backend, failures."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from attnbench.reports.pages import html, markdown
from attnbench.reports.pages.report import open_report
from tests.made_runs import grid, row, write_run
from tests.reports.rendering import NO_VALUE, text_of

BACKENDS = ("naive", "fused", "sdpa")
EVERY = grid(BACKENDS, (128, 256), (1, 8))
STATUSES = (
    *("oom", "timeout", "crashed", "error", "incorrect", "interrupted"),
    *("unsupported", "unavailable", "predicted_oom"),
)
UNKNOWN = dict.fromkeys(
    (
        *("block_ms", "peak_bytes", "predicted_peak_bytes", "input_bytes"),
        *("session", "kernel", "spent_s", "error_ratio"),
    )
)
RUNS: dict[str, Callable[[Path], Path]] = {
    "empty plan": lambda at: write_run(at, [], [], environment={}, scenario={}, memory_bytes=None),
    "nothing reached": lambda at: write_run(at, EVERY, []),
    "one backend": lambda at: write_run(
        at, one := grid(("sdpa",), (128, 256), (1, 8)), [row(case) for case in one]
    ),
    "one case": lambda at: write_run(at, EVERY[:1], [row(EVERY[0])]),
    "every case failed": lambda at: write_run(
        at, EVERY, [row(case, STATUSES[place % 9]) for place, case in enumerate(EVERY)]
    ),
    "no h = 1": lambda at: write_run(
        at, some := grid(BACKENDS, (128, 256), (2, 8)), [row(case) for case in some]
    ),
    "nothing known": lambda at: write_run(
        at, EVERY, [row(case, **UNKNOWN) for case in EVERY], memory_bytes=None
    ),
    "bytes alone": lambda at: write_run(at, EVERY, [row(case, block_ms=None) for case in EVERY]),
    "one call": lambda at: write_run(at, EVERY, [row(case, block_ms=[[[1.0]]]) for case in EVERY]),
    "empty blocks": lambda at: write_run(
        at, EVERY, [row(case, block_ms=[[[]], []]) for case in EVERY]
    ),
    "zeros": lambda at: write_run(
        at, EVERY, [row(case, peak_bytes=0, work_flops=0) for case in EVERY]
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_there_is_a_page_without_a_missing_value(tmp_path: Path, name: str) -> None:
    report = open_report([RUNS[name](tmp_path)])
    page = html.render(report)
    assert not re.search(NO_VALUE, text_of(page))
    text = markdown.render(report)
    assert text.startswith("# ")
    assert not re.search(NO_VALUE, text)
