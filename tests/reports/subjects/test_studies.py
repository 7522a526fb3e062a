"""reports/subjects/studies.py: a table of any findings, and the heat map that a study declares."""

from io import StringIO
from math import isnan
from pathlib import Path
from typing import Any

from rich.console import Console

from attnbench.reports.elements import Maps, Table
from attnbench.reports.pages.report import open_report
from attnbench.reports.pages.terminal import render_briefly
from attnbench.reports.quantity import Quantity
from attnbench.reports.subjects import Subject, studies
from tests.made_runs import with_study
from tests.reports.rendering import card_of, sentences, subject_of


def told(parent: Path, study: str, *findings: dict[str, Any]) -> Subject:
    return subject_of(studies, with_study(parent, study, [*findings]))


def table(of: Subject) -> Table:
    (found,) = (one.table for one in of.blocks if isinstance(one, Table | Maps))
    return found


def test_findings_of_a_study_that_is_gone_are_a_table_with_intervals(tmp_path: Path) -> None:
    bounded = {"error": 2.0, "error_low": 1.9, "error_high": 2.1}
    timed = {"step_ms": 3.0, "step_low_ms": 2.0, "step_high_ms": 4.0}
    found = table(told(tmp_path, "gone", {"kind": "a", **bounded, **timed}, {"kind": "b"}))
    assert found.columns == ("kind", "error", "step ms")
    assert found.rows[0] == ("a", Quantity(2.0, "plain", 1.9, 2.1), Quantity(3.0, "ms", 2.0, 4.0))
    assert found.rows[1] == ("b", "", "")


def test_lists_of_rows_are_a_line_each(tmp_path: Path) -> None:
    rows = {"score_rows": [[0.5, None], [1.25, 2]], "weight_rows": [[1], [0.274]]}
    found = table(told(tmp_path, "worked_example", {"mask": "none", **rows}, {"mask": "other"}))
    assert found.columns == ("mask", "row", "score", "weight")
    assert [*map(tuple, found.texts)] == [
        ("none", "1", "0.5, –", "1"),
        ("none", "2", "1.25, 2", "0.274"),
        ("other", "", "", ""),
    ]


def test_what_no_finding_has_is_no_column_and_counts_are_spaced(tmp_path: Path) -> None:
    counts = [{"heads": 8, "complaint": "", "parameter_count": 1050624, "case": None}]
    found = table(told(tmp_path, "parameter_count", *counts))
    assert found.columns == ("heads", "parameter count")
    assert [*map(tuple, found.texts)] == [("8", "1\u202f050\u202f624")]


def test_a_field_of_rows_is_drawn_and_broken_ones_are_not(tmp_path: Path) -> None:
    broken = ([[1.0], [0.5, 0.5]], [[]], [], [["x"]], "x", None)
    heads = [{"head": n, "weight_rows": one} for n, one in enumerate(broken, start=2)]
    of = told(tmp_path, "attention_maps", {"head": 1, "weight_rows": [[1.0, 0.0]]}, *heads)
    (maps,) = (one for one in of.blocks if isinstance(one, Maps))
    assert [(one.label, one.rows) for one in maps.maps] == [("head 1", ((1.0, 0.0),))]
    assert [row[0] for row in maps.table.texts] == [*"1234567"]


def test_a_number_is_drawn_over_two_fields_and_what_is_missing_is_no_zero(tmp_path: Path) -> None:
    scales = [
        {"d_k": d_k, "scaled": scaled, "entropy_ratio": 0.5}
        for d_k, scaled in ((8, False), (8, True), (64, True))
    ]
    of = told(tmp_path, "score_scale", *scales, {"d_k": 8, "scaled": True, "of": "nn.Linear"})
    (maps,) = (one for one in of.blocks if isinstance(one, Maps))
    assert (maps.x_names, maps.y_names) == (("8", "64"), ("no", "yes"))
    ((no, yes),) = (one.rows for one in maps.maps)
    assert (no[0], yes) == (0.5, (0.5, 0.5))
    assert isnan(no[1])


def test_processes_of_a_study_are_one_line_and_a_complaint_is_said(tmp_path: Path) -> None:
    of = [
        {"backend": "fused", "tokens": 8, "process": one, "full_step_ms": 1.0 + one / 10}
        for one in range(5)
    ]
    wrong = {"backend": "sdpa", "tokens": 8, "process": 0, "complaint": "cached steps differ"}
    none = {"dtype": "fp16", "complaint": "no such mask"}
    found = told(tmp_path, "generation", *of, wrong, none)
    assert len(table(found).columns) == 1 + 3  # turned: it has more fields than findings
    assert "sdpa: cached steps differ." in sentences(found.blocks)
    assert "generation: no such mask." in sentences(found.blocks)


def test_a_run_of_a_study_alone_has_it_as_its_answer(tmp_path: Path) -> None:
    findings = [{"layout": "merged", "heads": one, "copied_bytes": 2048} for one in range(11, 31)]
    beside = with_study(tmp_path / "beside", "head_copies", findings)
    assert subject_of(studies, beside).card is None
    alone = with_study(tmp_path / "alone", "head_copies", findings, alone=True)
    card = card_of(studies, alone)
    same = "all have layout merged and copied bytes 2 KiB"
    assert card.sentence.replace("\u00a0", " ") == f"Findings of head_copies: 20; {same}."
    assert isinstance(card.picture, Table)
    twice = with_study(tmp_path / "twice", "head_copies", findings * 2, alone=True)
    assert card_of(studies, twice).sentence.startswith(
        "Findings of head_copies: 40, 20 of them different;"
    )
    out = StringIO()
    Console(file=out, width=100).print(*render_briefly(open_report([alone])), sep="\n")
    text = out.getvalue()
    assert f"{card.sentence}\n" in text
    assert [line for line in text.split("\n") if line.strip().isdecimal()] == [
        *map(str, range(11, 23))
    ]
    assert text.endswith("8 more with --all.\n")
