"""reports/analysis/roofline.py: intensity, limit and share of measured peaks."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.analysis import roofline
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import records
from tests.reports.fake_runs import case, problem, row, write_run

PEAKS = {"gemm_fp32_flops_per_s": 4e12, "gemm_bf16_flops_per_s": None, "copy_bytes_per_s": 4e10}


CALIBRATION = {"schema": 1, "peaks": PEAKS, "checks": []}


def made(parent: Path, *, calibration: Any = CALIBRATION, **changes: Any) -> tuple[Any, Any]:
    """fused and sdpa at five lengths, 1 and 0.5 TFLOP/s."""
    cases = [
        case(backend, problem(n, **changes))
        for n in (64, 128, 256, 512, 1024)
        for backend in ("fused", "sdpa")
    ]
    rows = []
    for planned in cases:
        time_ms = (
            row(planned)["work_flops"] / (1e12 if planned["backend"] == "sdpa" else 5e11) * 1e3
        )
        rows.append(row(planned, block_ms=[[[time_ms * noise] for noise in (0.99, 1.0, 1.01)]]))
    read = read_run(write_run(parent, cases, rows, calibration=calibration))
    return frame([read]), {read.meta["run"]: read.meta}


def test_share_limit_and_ridge_follow_from_the_peaks(tmp_path: Path) -> None:
    table, meta = made(tmp_path)
    found = {
        (place.row["backend"], place.row["seq_len"]): place
        for place in roofline.places(records(table), meta)
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
    table, meta = made(tmp_path, dtype="bf16")
    assert all(
        place.peaks is None and place.share is None
        for place in roofline.places(records(table), meta)
    )
