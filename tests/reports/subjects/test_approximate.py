"""reports/subjects/approximate.py: errors, and what carries no information."""

from pathlib import Path

from attnbench.reports.data.row_groups import Group
from attnbench.reports.subjects import approximate
from attnbench.reports.subjects._over import panel
from tests.made_runs import inexact
from tests.reports.rendering import sentences, subject_of, tables_of


def test_an_output_that_carries_no_information_is_no_dot_and_the_page_says_why(
    tmp_path: Path,
) -> None:
    silent = {"linformer": 0.004, "linformer:64": -0.02}
    found = subject_of(approximate, inexact(tmp_path, cosines=silent))
    assert [one.backend for one in found.card.picture.panels[0].series] == ["performer"]
    (why,) = [one for one in sentences(list(found.blocks)) if "no information" in one.lower()]
    assert "linformer and linformer:64" in why
    (errors,) = tables_of(list(found.blocks))
    cosines = {(row[1], row[3]) for row in errors.texts}
    assert {("linformer", "0.00"), ("linformer:64", "-0.02"), ("performer", "0.90")} <= cosines


def test_pools_are_a_method_of_their_own() -> None:
    names = ("linformer", "linformer:64", "linformer:pool64", "performer:512", "mine")
    assert [approximate.method(name) for name in names] == [
        "linformer", "linformer", "linformer:pool", "performer", "mine",
    ]  # fmt: skip


def test_a_value_without_bounds_is_drawn_without_an_interval() -> None:
    rows = [{"backend": "fused", "seq_len": n, "error": 0.1} for n in (64, 128)]
    (series,) = panel(Group(label="", problem={}, rows=rows), column="error").series
    assert (series.y, series.low, series.high) == ((0.1, 0.1), (), ())
