"""reports/subjects/roofline.py: the roof with its lines, and notes without peaks."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Block
from attnbench.reports.subjects import roofline
from tests.made_runs import grid, made, problem, row, write_run
from tests.reports.data.test_decode import decode_run
from tests.reports.rendering import blocks_of, figures_of, rows_and_meta, sentences, tables_of

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


def test_a_dtype_whose_peak_was_not_measured_has_no_share(tmp_path: Path) -> None:
    rows, meta = rows_and_meta(calibrated_run(tmp_path, dtype="bf16"))
    assert all(place.peaks is None and place.share is None for place in roofline.places(rows, meta))


def rendered(parent: Path, **changes: Any) -> list[Block]:
    return blocks_of(roofline, calibrated_run(parent, **changes))


SHARE = re.compile(r"([\d.]+)\s%")


@pytest.mark.parametrize(
    ("flops_per_s", "bytes_per_s", "says"),
    [(5e11, 4e10, "above 100 % is impossible"), (4e13, 1e9, "impossible from memory alone")],
)
def test_no_share_above_1_stands_without_being_called_impossible(
    tmp_path: Path, flops_per_s: float, bytes_per_s: float, says: str
) -> None:
    slow = {"gemm_fp32_flops_per_s": flops_per_s, "copy_bytes_per_s": bytes_per_s}
    found = rendered(tmp_path, calibration={"peaks": slow})
    texts = [text.replace("\u00a0", " ") for text in sentences(found)]
    assert any("came from a cache" in text for text in texts)
    titles = [figure.title for figure in figures_of(found)]
    tables = [figure.table for figure in figures_of(found)]
    cells = [cell for table in tables for line in table.texts for cell in line]
    beyond = [
        text
        for text in (*titles, *cells)
        if any(float(share) > 100 for share in SHARE.findall(text))
    ]
    assert beyond
    assert all("impossible" in text for text in beyond)
    assert any(says in text.replace("\u00a0", " ") for text in beyond)


def shown_rows(found: list[Block]) -> int:
    """Of the only table, which is a figure's where peaks are known."""
    (table,) = [*tables_of(found), *(figure.table for figure in figures_of(found))]
    return len(table.rows)


def test_decode_steps_that_memory_limits_are_left_to_their_own_section(tmp_path: Path) -> None:
    (only,) = blocks_of(roofline, decode_run(tmp_path / "a"))
    assert "Decode and memory bandwidth" in only.text
    more = [made("sdpa", problem(512), 1.0)]
    found = blocks_of(roofline, decode_run(tmp_path / "b", more=more))
    assert shown_rows(found) == 1
    assert only.text in sentences(found)


def test_a_decode_step_that_arithmetic_limits_has_its_place_under_the_roof(tmp_path: Path) -> None:
    found = blocks_of(roofline, decode_run(tmp_path, work_flops=10**12))
    assert shown_rows(found) == 12
