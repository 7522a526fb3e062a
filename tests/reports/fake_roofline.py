"""A made-up run on a device with made-up peaks."""

from pathlib import Path
from typing import Any

from tests.reports.fake_runs import grid, row, write_run

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
