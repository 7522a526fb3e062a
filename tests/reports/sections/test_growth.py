"""reports/sections/growth.py: exponents, formulas, and needs at longer sequences."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.elements import Figure, Table, Text
from attnbench.reports.sections import growth as section
from tests.reports.fake_runs import case, problem, quickstart, row, write_run


def blocks(run: Path) -> list[Any]:
    read = read_run(run)
    return list(section.render(frame([read]), {read.meta["run"]: read.meta}))


def test_the_section_says_what_longer_sequences_would_need(tmp_path: Path) -> None:
    found = blocks(quickstart(tmp_path))
    figures = [block for block in found if isinstance(block, Figure)]
    assert len(figures) == 2
    assert figures[0].panels[0].y_scale == "linear"
    assert {series.kind for series in figures[0].panels[0].series} == {"measured", "formula"}
    needs = next(
        block
        for block in found
        if isinstance(block, Table) and block.title.startswith("Peak bytes of a call")
    )
    fused = next(line for line in needs.rows if line[:2] == ("h\u00a0=\u00a08", "fused"))
    assert fused == (
        "h\u00a0=\u00a08",
        "fused",
        "64 N² + 4096 N + 16 B",
        "measured",
        "all 6 lengths",
        "6 GiB",
        "64.1 GiB",
        "1 TiB",
    )
    times = next(
        block
        for block in found
        if isinstance(block, Table) and block.title.startswith("Times at long N")
    )
    sdpa = next(line for line in times.rows if line[:2] == ("h\u00a0=\u00a01", "sdpa"))
    assert sdpa[3] != "not predicted"
    assert sdpa[4] == "not predicted"  # 128k is 8 times 16k


def test_predicted_bytes_of_a_case_win_over_the_solution(tmp_path: Path) -> None:
    cases = [case("fused", problem(n)) for n in (128, 256, 512, 1024, 32768)]
    run = write_run(
        tmp_path,
        cases,
        [row(one, "ok" if one["seq_len"] < 2000 else "predicted_oom") for one in cases],
    )
    needs = next(
        block
        for block in blocks(run)
        if isinstance(block, Table) and block.title.startswith("Peak bytes of a call")
    )
    assert needs.rows[0][6] == "64.1 GiB, predicted"


@pytest.mark.parametrize("lengths", [(), (128,), (128, 256, 512)])
def test_too_few_lengths_have_a_note(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    cases = [case("fused", problem(n)) for n in lengths]
    said = [
        block.text
        for block in blocks(write_run(tmp_path, cases, [row(one) for one in cases]))
        if isinstance(block, Text)
    ]
    assert any("needs one problem timed at 4 lengths or more" in text for text in said)
