"""reports/contrasts.py: two settings of one axis; h heads against one, by an equivalence test."""

from pathlib import Path

from attnbench.reports import contrasts
from tests.made_runs import (
    case,
    made,
    problem,
    pruning,
    quickstart,
    row,
    run_of,
    write_run,
)
from tests.reports.rendering import rows_of


def of_axis(run: Path, axis: str) -> list[contrasts.Contrast]:
    return [one for _, some in contrasts.contrasts(rows_of(run), axis) for one in some]


def word(one: contrasts.Contrast) -> str | None:
    return one.time and one.time.word


def test_a_failed_setting_has_its_reason_and_one_that_ran_with_neither_is_left_out(
    tmp_path: Path,
) -> None:
    run = run_of(
        tmp_path,
        made("fused", problem(1024), 1.0),
        made("fused", problem(1024, mask="padding"), None),
        *(made("naive", problem(1024, mask=mask), None) for mask in ("none", "padding")),
    )
    (one,) = of_axis(run, "mask")
    assert (one.backend, one.time, word(one)) == ("fused", None, None)
    assert one.missing == "out of memory with padding mask"


def test_fewer_heads_of_a_fixed_width_are_a_contrast_and_narrower_heads_are_not(
    tmp_path: Path,
) -> None:
    some = of_axis(pruning(tmp_path / "pruned"), "heads")
    assert [(one.row["heads"], one.base["heads"]) for one in some] == [(4, 8), (1, 8)]
    assert of_axis(quickstart(tmp_path, lengths=(128, 256)), "heads") == []


# ---- h heads against one ------------------------------------------------------------------------


def test_scores_that_are_kept_between_calls_count_as_bytes_of_more_heads(tmp_path: Path) -> None:
    same = {"peak_bytes": 1000, "outside_bytes": 0}
    cases = [case("keeps", problem(256, h)) for h in (1, 8)]
    rows = [row(one, **same, workspace_bytes=1000 * one["heads"]) for one in cases]
    ((_, costs),) = contrasts.against_one_head(rows_of(write_run(tmp_path, cases, rows)))
    assert costs[-1].peak_bytes == 4.5
