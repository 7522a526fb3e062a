"""reports/sections/numerics.py: findings of studies, as figures or tables."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.elements import Figure, Table, Text
from attnbench.reports.sections import numerics as section
from tests.reports.fake_runs import case, problem, row, write_run


def scale(d_k: int, entropy: float, *, scaled: bool) -> dict[str, Any]:
    return {
        "study": "score_scale",
        "d_k": d_k,
        "scaled": scaled,
        "score_variance": 1.0 if scaled else float(d_k),
        "entropy_ratio": entropy,
    }


def error(backend: str, dtype: str, seq_len: int, value: Any) -> dict[str, Any]:
    return {
        "study": "precision",
        "backend": backend,
        "dtype": dtype,
        "seq_len": seq_len,
        "error_l2_ratio": value,
    }


def blocks(parent: Path, findings: list[dict[str, Any]]) -> list[Any]:
    planned = case("fused", problem(128))
    read = read_run(write_run(parent, [planned], [row(planned)]))
    return list(
        section.render(frame([read]), {read.meta["run"]: read.meta | {"studies": findings}})
    )


def test_without_a_study_the_section_says_how_to_request_one(tmp_path: Path) -> None:
    (only,) = blocks(tmp_path, [])
    assert isinstance(only, Text)
    assert "studies: [...]" in only.text


def test_entropy_is_drawn_with_and_without_the_factor(tmp_path: Path) -> None:
    found = [
        scale(d_k, 0.9 if scaled else 8 / d_k / 2, scaled=scaled)
        for d_k in (8, 512)
        for scaled in (False, True)
    ]
    (figure,) = blocks(tmp_path, found)
    assert isinstance(figure, Figure)
    assert figure.title.endswith("1 % of the highest possible entropy is left at d_k = 512")
    assert [panel.series[0].y for panel in figure.panels] == [(0.9, 0.9), (0.5, 0.0078125)]
    assert len(figure.table.rows) == 4


def test_errors_are_drawn_for_backends_of_the_run_and_the_table_has_all(tmp_path: Path) -> None:
    found = [
        error(b, d, n, 1e-6 * n)
        for b in ("fused", "unplanned")
        for d in ("fp32", "bf16")
        for n in (256, 64)
    ]
    (figure,) = blocks(tmp_path, found)
    assert isinstance(figure, Figure)
    assert figure.title == "Relative errors are at most 2.56e-04 in fp32 and 2.56e-04 in bf16"
    assert [[series.backend for series in panel.series] for panel in figure.panels] == [
        ["fused"],
        ["fused"],
    ]
    assert figure.panels[0].series[0].x == (64, 256)
    assert len(figure.table.rows) == 8


def test_a_study_without_a_figure_is_a_table(tmp_path: Path) -> None:
    (table,) = blocks(
        tmp_path,
        [
            {
                "study": "new_one",
                "holds": True,
                "size_bytes": 3,
                "note": "x" * 100,
                "gap_ratio": None,
            }
        ],
    )
    assert isinstance(table, Table)
    assert table.columns == ("holds", "size_bytes", "note", "gap_ratio")
    (cells,) = table.rows
    assert cells[0] == "yes"
    assert cells[3] == ""
    assert len(cells[2]) == section.WIDEST_CELL


@pytest.mark.parametrize(
    "broken",
    [
        {"study": 3},
        {},
        error("fused", "fp32", 64, "x"),
        error("fused", "fp32", 64, 0),
        scale(8, 0.5, scaled=True) | {"d_k": None},
    ],
)
def test_broken_findings_are_skipped(tmp_path: Path, broken: dict[str, Any]) -> None:
    assert not [block for block in blocks(tmp_path, [broken]) if isinstance(block, Figure)]
