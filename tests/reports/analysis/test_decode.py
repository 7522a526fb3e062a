"""reports/analysis/decode.py: the finding on decode steps."""

from pathlib import Path

from attnbench.reports.analysis.decode import finding, known_rates, largest, timed_steps
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import records
from attnbench.reports.data.run_meta import run_meta
from tests.reports.fake_contrasts import timed
from tests.reports.fake_decode import decode_run
from tests.reports.fake_runs import problem


def finding_of(run: Path) -> str:
    read = [read_run(run)]
    return finding(records(frame(read)), run_meta(read)).replace("\u00a0", " ")


def test_the_finding_is_about_the_problem_that_moves_most_and_ranks_the_backends(
    tmp_path: Path,
) -> None:
    text = finding_of(decode_run(tmp_path))
    assert text.startswith("at N_kv = 8k, h_kv = h sdpa reaches 50.0 % (49.")
    assert text.endswith(
        " of the measured memory bandwidth (10.0 GB/s of 20.0 GB/s), naive 25.0 % (24.5 to 25.5)"
    )


def test_without_a_measured_bandwidth_it_has_rates_and_the_command(tmp_path: Path) -> None:
    text = finding_of(decode_run(tmp_path, calibrated={}))
    assert (
        "sdpa moves 10.0 GB/s (9.80 GB/s to 10.2 GB/s), naive 5.00 GB/s (4.90 GB/s to 5.10 GB/s)"
        in text
    )
    assert text.endswith("before the run: attnbench doctor --calibrate")
    assert "%" not in text


def test_what_limits_the_best_share_is_said(tmp_path: Path) -> None:
    assert "fit in the CPU's cache" in finding_of(decode_run(tmp_path, cache_bytes=1 << 40))


def test_other_cases_and_steps_without_bytes_are_left_out(tmp_path: Path) -> None:
    long = timed("sdpa", problem(4096), 5.0)
    unknown = timed(
        "linformer", problem(1, 32, kv_seq_len=1 << 20, d_model=4096), 5.0, exactness="approximate"
    )
    run = decode_run(tmp_path, more=[long, unknown])
    rows = records(frame([read_run(run)]))
    assert len(timed_steps(rows)) == len(rows) - 1
    assert len(known_rates(rows)) == len(rows) - 2
    assert largest(rows).problem["kv_seq_len"] == 8192
