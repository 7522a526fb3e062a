"""reports/sections/roofline.py: the roof with its lines, and notes without peaks."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.elements import Block, Figure, Table, Text
from attnbench.reports.sections import roofline as section
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


def rendered(parent: Path, **changes: Any) -> list[Block]:
    return list(section.render(*made(parent, **changes)))


@pytest.mark.parametrize(
    "calibration",
    [
        None,
        {},
        [],
        {"peaks": None},
        {"peaks": {"gemm_fp32_flops_per_s": "fast", "copy_bytes_per_s": 1}},
    ],
)
def test_without_peaks_there_is_no_share_and_a_note_on_how_to_measure_them(
    tmp_path: Path, calibration: Any
) -> None:
    found = rendered(tmp_path, calibration=calibration)
    assert not [block for block in found if isinstance(block, Figure)]
    assert any(
        "attnbench doctor --calibrate" in block.text for block in found if isinstance(block, Text)
    )
    (table,) = (block for block in found if isinstance(block, Table))
    assert table.columns == ("problem", "backend", "achieved", "FLOP per byte, at most")


def test_the_figure_has_the_roof_with_its_ridge_and_a_line_per_backend(tmp_path: Path) -> None:
    found = rendered(tmp_path)
    (figure,) = (block for block in found if isinstance(block, Figure))
    roof, *lines = figure.panels[0].series
    assert dict(zip(roof.x, roof.y, strict=True))[100] == 4e12
    assert max(y for y in roof.y if y is not None) == 4e12
    assert [line.backend for line in lines] == ["fused", "sdpa"]
    assert "sdpa reaches 25.0 % of what is attainable at N\u00a0=\u00a01k" in figure.title
    assert any("highest possible" in block.text for block in found if isinstance(block, Text))


def test_a_share_above_1_is_explained(tmp_path: Path) -> None:
    slow = {"peaks": {"gemm_fp32_flops_per_s": 5e11, "copy_bytes_per_s": 4e10}}
    assert any(
        "came from a cache" in block.text
        for block in rendered(tmp_path, calibration=slow)
        if isinstance(block, Text)
    )


def test_no_timed_case_is_one_note(tmp_path: Path) -> None:
    cases = [case("fused", problem(64))]
    for name, rows in (
        ("none", []),
        ("failed", [row(cases[0], "crashed")]),
        ("no bytes", [row(cases[0], minimal_bytes=None)]),
    ):
        read = read_run(write_run(tmp_path / name, cases, rows))
        (only,) = section.render(frame([read]), {read.meta["run"]: read.meta})
        assert isinstance(only, Text)
