"""reports/subjects/growth.py: exponents, formulas, and needs at longer sequences."""

from pathlib import Path

from attnbench.reports.elements import Block, Table
from attnbench.reports.subjects import growth as section
from tests.made_runs import case, problem, row, write_run
from tests.reports.rendering import blocks_of, tables_of


def table(blocks: list[Block], start: str) -> Table:
    (found,) = (one for one in tables_of(blocks) if one.title.startswith(start))
    return found


def test_predicted_bytes_of_a_case_win_over_the_solution(tmp_path: Path) -> None:
    cases = [case("fused", problem(n)) for n in (128, 256, 512, 1024, 32768)]
    run = write_run(
        tmp_path,
        cases,
        [row(one, "ok" if one["seq_len"] < 2000 else "predicted_oom") for one in cases],
    )
    needs = table(blocks_of(section, run), "Peak bytes of a call")
    assert needs.rows[0][6] == "64.1 GiB, predicted"
