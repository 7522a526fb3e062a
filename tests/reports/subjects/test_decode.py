"""reports/subjects/decode.py: the rate of decode steps, and why it is not known."""

from pathlib import Path

from attnbench.reports.subjects import decode
from attnbench.reports.subjects.decode import known_rates, largest, timed_steps
from tests.made_runs import made, problem
from tests.reports.data.test_decode import decode_run
from tests.reports.rendering import blocks_of, rows_of


def test_other_cases_and_steps_without_bytes_are_left_out(tmp_path: Path) -> None:
    long = made("sdpa", problem(4096), 5.0)
    unknown = made(
        "linformer", problem(1, 32, kv_seq_len=1 << 20, d_model=4096), 5.0, exactness="approximate"
    )
    run = decode_run(tmp_path, more=[long, unknown])
    rows = rows_of(run)
    assert len(timed_steps(rows)) == len(rows) - 1
    assert len(known_rates(rows)) == len(rows) - 2
    assert largest(rows).problem["kv_seq_len"] == 8192


def test_steps_whose_bytes_are_not_known_have_no_rate_and_say_why(tmp_path: Path) -> None:
    step = made("performer", problem(1, kv_seq_len=512), 5.0, exactness="approximate")
    (said,) = blocks_of(decode, decode_run(tmp_path, lengths=(), more=[step]))
    assert said.text.startswith("Not exact attention")
