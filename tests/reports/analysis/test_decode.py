"""reports/analysis/decode.py: the finding on decode steps."""

from pathlib import Path

from attnbench.reports.analysis.decode import known_rates, largest, timed_steps
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import records
from tests.made_runs import made, problem
from tests.reports.data.test_decode import decode_run


def test_other_cases_and_steps_without_bytes_are_left_out(tmp_path: Path) -> None:
    long = made("sdpa", problem(4096), 5.0)
    unknown = made(
        "linformer", problem(1, 32, kv_seq_len=1 << 20, d_model=4096), 5.0, exactness="approximate"
    )
    run = decode_run(tmp_path, more=[long, unknown])
    rows = records(frame([read_run(run)]))
    assert len(timed_steps(rows)) == len(rows) - 1
    assert len(known_rates(rows)) == len(rows) - 2
    assert largest(rows).problem["kv_seq_len"] == 8192
