"""reports/analysis/roofline.py: intensity, limit and share of measured peaks."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import roofline
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import Row, records
from attnbench.reports.data.run_meta import Meta, run_meta
from tests.made_runs import grid, row, write_run

PEAKS = {"gemm_fp32_flops_per_s": 4e12, "gemm_bf16_flops_per_s": None, "copy_bytes_per_s": 4e10}
CALIBRATION = {"schema": 1, "peaks": PEAKS, "checks": []}


def calibrated_run(parent: Path, *, calibration: Any = CALIBRATION, **changes: Any) -> Path:
    """fused and sdpa at five lengths, at 0.5 and 1 TFLOP/s; `changes` are of each problem."""
    cases = grid(("fused", "sdpa"), (64, 128, 256, 512, 1024), **changes)
    rows = []
    for planned in cases:
        flops_per_s = 1e12 if planned["backend"] == "sdpa" else 5e11
        time_ms = row(planned)["work_flops"] / flops_per_s * 1e3
        rows.append(row(planned, block_ms=[[[time_ms * noise] for noise in (0.99, 1.0, 1.01)]]))
    return write_run(parent, cases, rows, calibration=calibration)


def made(parent: Path, **changes: Any) -> tuple[list[Row], Meta]:
    runs = [read_run(calibrated_run(parent, **changes))]
    return records(frame(runs)), run_meta(runs)


def test_share_limit_and_ridge_follow_from_the_peaks(tmp_path: Path) -> None:
    rows, meta = made(tmp_path)
    found = {
        (place.row["backend"], place.row["seq_len"]): place for place in roofline.places(rows, meta)
    }
    short, long = found["sdpa", 64], found["sdpa", 1024]
    assert short.peaks is not None
    assert short.peaks.ridge == 100
    assert (short.intensity, long.intensity) == (16, 256)  # N / 4 in fp32
    assert (short.bound, long.bound) == ("memory", "compute")
    assert short.share is not None
    assert long.share is not None
    assert short.share.value == pytest.approx(1e12 / (16 * 4e10), rel=0.01)
    assert long.share.value == pytest.approx(0.25, rel=0.01)
    assert long.share.low < 0.25 < long.share.high
    assert long.achieved_flops_per_s.low < 1e12 < long.achieved_flops_per_s.high


def test_a_dtype_whose_peak_was_not_measured_has_no_share(tmp_path: Path) -> None:
    rows, meta = made(tmp_path, dtype="bf16")
    assert all(place.peaks is None and place.share is None for place in roofline.places(rows, meta))
