"""reports/sections/growth.py: exponents, formulas, and needs at longer sequences."""

from pathlib import Path

import pytest

from attnbench.reports.elements import Block, Table
from attnbench.reports.sections import growth as section
from tests.reports.fake_runs import case, problem, quickstart, row, write_run
from tests.reports.rendering import blocks_of, figures_of, sentences, tables_of


def table(blocks: list[Block], start: str) -> Table:
    (found,) = (one for one in tables_of(blocks) if one.title.startswith(start))
    return found


def test_the_section_says_what_longer_sequences_would_need(tmp_path: Path) -> None:
    found = blocks_of(section, quickstart(tmp_path))
    figures = figures_of(found)
    assert len(figures) == 2
    assert figures[0].panels[0].y_scale == "linear"
    assert {series.kind for series in figures[0].panels[0].series} == {"measured", "formula"}
    needs = table(found, "Peak bytes of a call")
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
    times = table(found, "Times at long N")
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
    needs = table(blocks_of(section, run), "Peak bytes of a call")
    assert needs.rows[0][6] == "64.1 GiB, predicted"


@pytest.mark.parametrize("lengths", [(), (128,), (128, 256, 512)])
def test_too_few_lengths_have_a_note(tmp_path: Path, lengths: tuple[int, ...]) -> None:
    cases = [case("fused", problem(n)) for n in lengths]
    run = write_run(tmp_path, cases, [row(one) for one in cases])
    texts = sentences(blocks_of(section, run))
    assert any("needs one problem timed at 5 lengths or more" in text for text in texts)
