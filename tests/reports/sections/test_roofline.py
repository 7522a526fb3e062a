"""reports/sections/roofline.py: the roof with its lines, and notes without peaks."""

import re
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Block, Text
from attnbench.reports.sections import roofline as section
from tests.made_runs import made, problem
from tests.reports.analysis.test_roofline import calibrated_run
from tests.reports.data.test_decode import decode_run
from tests.reports.rendering import blocks_of, figures_of, sentences, tables_of


def rendered(parent: Path, **changes: Any) -> list[Block]:
    return blocks_of(section, calibrated_run(parent, **changes))


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
    assert not figures_of(found)
    assert any("attnbench doctor --calibrate" in text for text in sentences(found))
    (table,) = tables_of(found)
    assert table.columns == ("problem", "backend", "achieved", "FLOP per byte, at most")


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
    cells = [cell for table in tables_of(found) for line in table.rows for cell in line]
    beyond = [
        text
        for text in (*titles, *cells)
        if any(float(share) > 100 for share in SHARE.findall(text))
    ]
    assert beyond
    assert all("impossible" in text for text in beyond)
    assert any(says in text.replace("\u00a0", " ") for text in beyond)


def test_decode_steps_that_memory_limits_are_left_to_their_own_section(tmp_path: Path) -> None:
    (only,) = blocks_of(section, decode_run(tmp_path / "a"))
    assert isinstance(only, Text)
    assert "Decode and memory bandwidth" in only.text
    more = [made("sdpa", problem(512), 1.0)]
    found = blocks_of(section, decode_run(tmp_path / "b", more=more))
    assert len(tables_of(found)[-1].rows) == 1
    assert only.text in sentences(found)


def test_a_decode_step_that_arithmetic_limits_has_its_place_under_the_roof(tmp_path: Path) -> None:
    found = blocks_of(section, decode_run(tmp_path, work_flops=10**12))
    assert len(tables_of(found)[-1].rows) == 12
