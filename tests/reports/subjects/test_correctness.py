"""reports/subjects/correctness.py and the badge: only exact cases are checked."""

from pathlib import Path

from attnbench.reports.data.row_groups import Row
from attnbench.reports.data.run_meta import Meta
from attnbench.reports.subjects import correctness
from attnbench.reports.subjects.trust import checks
from tests.made_runs import inexact, with_study
from tests.reports.rendering import blocks_of, rows_and_meta, tables_of


def badge_of(rows: list[Row], meta: Meta) -> tuple[str, str]:
    return checks(rows, meta)["Right"]["correctness"]


def test_the_badge_and_section_speak_of_exact_cases(tmp_path: Path) -> None:
    run = inexact(tmp_path)
    rows, meta = rows_and_meta(run)
    assert badge_of(rows, meta)[0] == "good"
    table, *_ = tables_of(blocks_of(correctness, run))
    assert [line[0] for line in table.rows] == ["fused", "sdpa"]
    inexact_rows = [one for one in rows if one["backend"] == "rnn"]
    assert badge_of(inexact_rows, meta)[:2] == ("unknown", "No timed case is exact attention.")


def test_equal_bits_are_told_per_backend_of_all_cases(tmp_path: Path) -> None:
    rows, meta = rows_and_meta(with_study(tmp_path, "any", []))
    again = {"naive": [True], "fused": [True, False], "sdpa": [None]}
    everywhere = {"naive": True, "fused": False, "sdpa": None}

    def observed(row: Row, number: int) -> Row:
        name = row["backend"]
        own = {
            "repeats_exactly": again[name][number % len(again[name])],
            "processes_repeat_exactly": everywhere[name],
            "processes": 3 if number else None,  # of a case that failed later
        }
        return {**row, **own}

    told = [observed(row, number // 3) for number, row in enumerate(rows)]
    (table,) = tables_of(list(correctness.subject(told, meta).blocks))
    assert [line[0] for line in table.texts] == ["naive", "fused", "sdpa"]
    assert [line[-2:] for line in table.texts] == [
        ("yes", "yes, in 3"),
        ("in 2 of 4 cases", "no"),
        ("", ""),
    ]
