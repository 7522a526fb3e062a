"""reports/contrasts.py: two settings of one axis; h heads against one, by an equivalence test."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports import contrasts
from attnbench.reports.subjects.contrasts import Contrasted
from attnbench.reports.subjects.contrasts import contrasted as contrasted_axes
from tests.made_runs import (
    case,
    head_sweep,
    made,
    problem,
    pruning,
    quickstart,
    row,
    run_of,
    training,
    write_run,
)
from tests.reports.rendering import one_of, rows_and_meta, rows_of


def contrasted(run: Path) -> dict[str, Contrasted]:
    return {one.axis: one for one in contrasted_axes(*rows_and_meta(run))}


def of_axis(run: Path, axis: str) -> list[contrasts.Contrast]:
    return [one for _, some in contrasts.contrasts(rows_of(run), axis) for one in some]


def word(one: contrasts.Contrast) -> str | None:
    return one.time and one.time.word


def test_the_backward_pass_is_a_paired_ratio_with_an_interval(tmp_path: Path) -> None:
    some = of_axis(training(tmp_path), "passes")
    assert len(some) == 8  # two backends, two scopes, two lengths
    for one in some:
        assert one.base["passes"] == "forward"
        assert one.time.paired
        expected = 3.0 if one.row["scope"] == "core" else 2.5
        assert one.time.low < expected < one.time.high < 1.05 * expected
        assert one.peak_bytes == 2


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "passes": ({"passes": "forward"}, {"passes": "backward"}),
    "mask": ({}, {"mask": "local", "window": 64}),
    "causal": ({}, {"causal": True, "causal_align": "top_left"}),
    "kv_heads": ({"kv_heads": 8}, {"kv_heads": 2}),
    "kv_seq_len": ({"kv_seq_len": 2048}, {"kv_seq_len": 4096}),
    "dtype": ({}, {"dtype": "bf16"}),
    "window": ({"mask": "local", "window": 64}, {"mask": "local", "window": 128}),
    "scope": ({}, {"scope": "layer"}),
    "d_model": ({}, {"d_model": 1024}),
    "d_k": ({"d_k": 32, "d_v": 32}, {"d_k": 48, "d_v": 48}),
    "batch": ({}, {"batch": 4}),
}


@pytest.mark.parametrize("axis", CHANGES)
def test_two_values_of_every_axis_are_a_contrast_of_that_axis_alone(
    tmp_path: Path, axis: str
) -> None:
    run = run_of(
        tmp_path,
        *(
            made("fused", problem(1024, **of), ms)
            for of, ms in zip(CHANGES[axis], (1.0, 2.0), strict=True)
        ),
    )
    found = contrasted(run)
    assert list(found) == [axis]
    ((_, (one,)),) = found[axis].problems
    assert one.time.value == pytest.approx(2, rel=0.02)
    assert word(one) == "more"
    assert contrasts.setting(axis, one.row) != contrasts.setting(axis, one.base)


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


def test_runs_without_a_second_value_have_no_contrast(tmp_path: Path) -> None:
    run = run_of(tmp_path, made("fused", problem(1024), 1.0), contrast=("passes",))
    assert contrasted(run) == {}


# ---- h heads against one ------------------------------------------------------------------------


def test_heads_are_compared_with_one_head_of_the_same_backend(tmp_path: Path) -> None:
    rows = rows_of(head_sweep(tmp_path))
    ((group, costs),) = contrasts.against_one_head(rows)
    assert [cost.heads for cost in costs if cost.backend == "sdpa"] == [2, 4, 8, 16, 32, 64]
    assert {cost.counted("work_flops") for cost in costs} == {1.0}
    fused = next(cost for cost in costs if cost.backend == "fused" and cost.heads == 8)
    assert (
        fused.peak_bytes
        == one_of(rows, backend="fused", heads=8)["peak_bytes"]
        / one_of(rows, backend="fused", heads=1)["peak_bytes"]
    )
    assert fused.time.paired
    assert [cost.heads for cost in contrasts.most_heads(costs) if cost.backend == "fused"] == [32]
    assert group.problem["seq_len"] == 2048


def test_scores_that_are_kept_between_calls_count_as_bytes_of_more_heads(tmp_path: Path) -> None:
    same = {"peak_bytes": 1000, "outside_bytes": 0}
    cases = [case("keeps", problem(256, h)) for h in (1, 8)]
    rows = [row(one, **same, workspace_bytes=1000 * one["heads"]) for one in cases]
    ((_, costs),) = contrasts.against_one_head(rows_of(write_run(tmp_path, cases, rows)))
    assert costs[-1].peak_bytes == 4.5
