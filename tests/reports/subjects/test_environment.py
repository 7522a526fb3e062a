"""reports/subjects/environment.py: which device measured what, and which part of a plan that is."""

from pathlib import Path

from attnbench.reports.subjects import environment
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import blocks_of

MERGED = [{"number": 1, "of": 2, "run": "a"}, {"number": 2, "of": 2, "run": "b"}]


def test_rows_from_before_devices_were_recorded_are_shown(tmp_path: Path) -> None:
    planned = [case("fused", problem(64))]
    rows = [row(planned[0], "ok")]
    for name in ("host", "device_name", "device_uuid"):
        rows[0].pop(name, None)
    assert blocks_of(environment, write_run(tmp_path, planned, rows, merged=MERGED))
