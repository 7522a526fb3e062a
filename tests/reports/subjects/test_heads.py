"""reports/subjects/heads.py: heads are compared with heads, and the curve over h comes first."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports import contrasts
from attnbench.reports.claims.claim import outcomes
from attnbench.reports.claims.ledger import CLAIMS
from attnbench.reports.elements import Bars, Figure
from attnbench.reports.exports import export
from attnbench.reports.subjects import heads
from tests.made_runs import changed, grid, head_sweep, row, write_run
from tests.reports.rendering import card_of, page_of, rows_of


def with_kernels(parent: Path) -> Path:
    """One head and eight; sdpa runs another kernel with one."""
    cases = grid(("fused", "sdpa"), (512, 1024), (1, 8))

    def kernel(one: Any) -> str:
        if one["backend"] == "fused":
            return "bmm"
        return "efficient" if one["heads"] == 1 else "cudnn"

    rows = [row(one, kernel=kernel(one)) for one in cases]
    return write_run(parent, cases, rows, name="quickstart")


@pytest.mark.parametrize(("kernel", "compared"), [("two", False), ("cudnn", True), (None, True)])
def test_two_kernels_are_no_verdict_on_heads(
    kernel: str | None, compared: bool, tmp_path: Path
) -> None:
    """One kernel on both sides is compared, and one that is not known is no difference."""

    run = changed(
        with_kernels(tmp_path),
        "retold",
        lambda one: one | {"kernel": one["kernel"] if kernel == "two" else kernel},
    )
    times = [
        one
        for one in json.loads(export(run, "json").content)
        if (one["answer"], one["quantity"]) == ("heads", "time_ratio")
    ]
    decided = {one["place"]["backend"] for one in times if one["value"] is not None}
    assert decided == ({"fused", "sdpa"} if compared else {"fused"})
    picture = card_of(heads, run).picture
    assert isinstance(picture, Bars)
    flops, *others = (bars for _, bars in picture.groups)
    assert [(one.label, one.share, one.parts) for one in flops] == [
        ("1 head", 1.0, 1),
        ("8 heads", 1.0, 8),
    ]
    for bars in others:  # of memory and of time
        assert {one.backend for one in bars} == decided


def test_a_claim_on_the_time_of_heads_is_not_decided_by_two_kernels(tmp_path: Path) -> None:
    outcome = {one.claim.name: one for one in outcomes(CLAIMS, rows_of(with_kernels(tmp_path)))}
    found = [one for one in outcome["C3c"].found if one.backend == "sdpa"]
    assert found
    assert all("this compares kernels" in one.doubt for one in found)


def test_the_page_of_head_cost_begins_with_the_curve_over_h(tmp_path: Path) -> None:
    run = head_sweep(tmp_path)
    card = card_of(heads, run)
    assert isinstance(card.picture, Figure)
    assert [one.x_label for one in card.picture.panels] == ["heads h"] * 2
    page = page_of(run)
    first = page.index("<svg")
    assert "heads h" in page[first : page.index("</svg>", first)]


@pytest.mark.parametrize("axis", ["mask", "dtype"])
def test_other_contrasts_name_both_kernels_and_keep_their_verdict(
    axis: str, tmp_path: Path
) -> None:
    base, more = {"mask": ({}, {"mask": "padding"}), "dtype": ({}, {"dtype": "bf16"})}[axis]
    cases = [*grid(("sdpa",), (512,), **base), *grid(("sdpa",), (512,), **more)]
    for one, name in zip(cases, ("a", "b"), strict=True):
        one["case"] += name
    rows = [row(one, kernel=name) for one, name in zip(cases, ("flash", "math"), strict=True)]
    ((_, (found,)),) = contrasts.contrasts(rows_of(write_run(tmp_path, cases, rows)), axis)
    assert "this compares kernels" in found.kernels
    assert found.of_heads
