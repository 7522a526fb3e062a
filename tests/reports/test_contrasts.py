"""reports/contrasts.py: two settings of one axis, on otherwise equal problems."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports import contrasts
from attnbench.reports.contrasts import SameTime
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.subjects.contrasts import Contrasted
from attnbench.reports.subjects.contrasts import contrasted as contrasted_axes
from tests.made_runs import made, problem, pruning, quickstart, run_of, training
from tests.reports.rendering import rows_of


def contrasted(run: Path) -> dict[str, Contrasted]:
    found = contrasted_axes(rows_of(run), run_meta([read_run(run)]))
    return {one.axis: one for one in found}


def of_axis(run: Path, axis: str) -> list[contrasts.Contrast]:
    return [one for _, some in contrasts.contrasts(rows_of(run), axis) for one in some]


def word(one: contrasts.Contrast) -> str | None:
    found: SameTime | None = one.same_time
    return found and found.word


def test_the_backward_pass_is_a_paired_ratio_with_an_interval(tmp_path: Path) -> None:
    some = of_axis(training(tmp_path), "passes")
    assert len(some) == 8  # two backends, two scopes, two lengths
    for one in some:
        assert one.base["passes"] == "forward"
        assert one.time is not None
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
    assert one.time is not None
    assert one.time.value == pytest.approx(2, rel=0.02)
    assert word(one) == "more"
    assert contrasts.setting(axis, one.row) != contrasts.setting(axis, one.base)


def test_a_failed_setting_has_its_reason_and_no_ratio(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        made("fused", problem(1024), 1.0),
        made("fused", problem(1024, mask="padding"), None),
    )
    (one,) = of_axis(run, "mask")
    assert one.time is None
    assert word(one) is None
    assert one.missing == "out of memory with padding mask"


def test_a_backend_that_ran_with_neither_setting_is_left_out(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        *(
            made(backend, problem(1024, mask=mask), ms)
            for mask in ("none", "padding")
            for backend, ms in (("fused", 1.0), ("naive", None))
        ),
    )
    assert {one.backend for one in of_axis(run, "mask")} == {"fused"}


def test_fewer_heads_of_a_fixed_width_are_a_contrast_and_narrower_heads_are_not(
    tmp_path: Path,
) -> None:
    some = of_axis(pruning(tmp_path / "pruned"), "heads")
    assert [(one.row["heads"], one.base["heads"]) for one in some] == [(4, 8), (1, 8)]
    assert of_axis(quickstart(tmp_path, lengths=(128, 256)), "heads") == []


def test_equal_times_are_called_the_same_and_noisy_ones_undecided(tmp_path: Path) -> None:
    equal = run_of(
        tmp_path / "equal",
        made("fused", problem(1024), 1.0),
        made("fused", problem(1024, mask="padding"), 1.001),
    )
    (one,) = of_axis(equal, "mask")
    assert word(one) == "same"
    one_process = {"block_ms": [[[1.0], [1.1], [0.9]]], "processes": 1}
    noisy = run_of(
        tmp_path / "noisy",
        made("fused", problem(1024), 1.0, **one_process),
        made("fused", problem(1024, mask="padding"), 1.0, **one_process),
        contrast=("mask",),
    )
    (one,) = of_axis(noisy, "mask")
    assert word(one) == "undecided"


def test_runs_without_a_second_value_have_no_contrast(tmp_path: Path) -> None:
    run = run_of(tmp_path, made("fused", problem(1024), 1.0), contrast=("passes",))
    assert contrasted(run) == {}
