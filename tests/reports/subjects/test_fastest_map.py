"""reports/subjects/fastest.py: the table of every problem says ties and paired ratios."""

import re
from pathlib import Path
from typing import Any

from attnbench.reports.elements import Table
from attnbench.reports.subjects import _latencies
from attnbench.reports.subjects import fastest as subject
from attnbench.reports.subjects._race import race
from tests import made_runs
from tests.made_runs import case, problem, write_run
from tests.reports.rendering import subject_of, tables_of


def map_of(run: Path) -> Table:
    (found,) = tables_of(list(subject_of(subject, run).blocks))
    return found


def test_a_tie_is_written_as_one_in_every_cell_of_it(tmp_path: Path) -> None:
    cases = [case(backend, problem(128)) for backend in ("a", "b", "c")]
    blocks = ([[[1.0], [1.01], [1.0]]], [[[1.5], [1.52], [1.51]]], [[[0.5], [9.0], [2.0]]])
    rows = [made_runs.row(one, block_ms=block) for one, block in zip(cases, blocks, strict=True)]
    found = map_of(write_run(tmp_path, cases, rows))
    (cells,) = (line[1:] for line in found.rows)
    assert [re.sub(r"[\d.]+", "#", cell) for cell in cells] == [
        "# ms · tie: a = c",
        "# ms · ×#",
        "# ms · ×# · tie",
    ]
    assert not found.strong


def test_a_cell_has_the_paired_ratio_of_the_verdict_not_that_of_the_medians() -> None:
    def timed(name: str, call_ms: float, latency_ms: float) -> dict[str, Any]:
        made = made_runs.row(case(name, problem(256)), "ok", block_ms=[[[call_ms]] * 5])
        return made | {"latency_ms": latency_ms}

    fastest, other = timed("fused", 1.0, 1.0), timed("sdpa", 2.0, 9.0)
    found = race([fastest, other])
    assert "×2.00" in _latencies.beside(other, found)
    assert "×9" not in _latencies.beside(other, found)
    inexact_row = other | {"exactness": "approximate"}
    alone = race([fastest, inexact_row])
    assert "×2.00" in _latencies.beside(inexact_row, alone)
