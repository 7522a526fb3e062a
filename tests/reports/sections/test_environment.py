"""reports/sections/environment.py: which device measured what, and which part of a plan that is."""

from pathlib import Path

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.sections import environment as section
from tests.made_runs import case, problem, row, write_run

MERGED = [{"number": 1, "of": 2, "run": "a"}, {"number": 2, "of": 2, "run": "b"}]


def test_rows_from_before_devices_were_recorded_are_shown(tmp_path: Path) -> None:
    planned = [case("fused", problem(64))]
    rows = [row(planned[0], "ok")]
    for name in ("host", "device_name", "device_uuid"):
        rows[0].pop(name, None)
    runs = [read_run(write_run(tmp_path, planned, rows, merged=MERGED))]
    assert list(section.render(frame(runs), run_meta(runs)))
