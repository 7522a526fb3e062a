"""reports/subjects/kernels.py: FLOP/s beside the peak, where the question is of kernels."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.drawing.picture import drawn
from attnbench.reports.elements import Bars
from attnbench.reports.pages.report import open_report
from attnbench.reports.subjects import kernels
from tests.made_runs import made, problem, write_run
from tests.reports.rendering import card_of, subject_of

ASKS = "How fast are these kernels?"


def run(folder: Path, question: str = ASKS, **meta: Any) -> Path:
    """triton takes 5 ms and sdpa:flash 10, at two N."""
    cases = [
        made(name, problem(n), ms)
        for n in (512, 1024)
        for name, ms in (("triton", 5.0), ("sdpa:flash", 10.0))
    ]
    scenario = {"name": "kernels", "question": question, "baseline": "sdpa:flash"}
    planned, rows = ([one | {"device": "cuda"} for one in of] for of in zip(*cases, strict=True))
    return write_run(folder, planned, rows, scenario=scenario, device="cuda", **meta)


def bars_of(path: Path) -> Bars:
    bars = card_of(kernels, path).picture
    assert isinstance(bars, Bars)
    return bars


def test_the_question_of_kernels_is_answered_by_their_flops_first(tmp_path: Path) -> None:
    path = run(tmp_path)
    says = "Forward pass: triton reaches "
    report = open_report([path])
    assert report.answer.startswith(says)
    assert report.answer.endswith(" triton is faster than sdpa:flash in 1 of 1 problem.")
    assert report.sections[0].name == "asked"
    assert [card.name for card in report.sections[0].cards] == ["kernels"]


def test_where_no_peak_was_measured_the_card_says_so_and_draws_none(tmp_path: Path) -> None:
    path = run(tmp_path)
    assert "No peaks were measured" in card_of(kernels, path).note
    bars = bars_of(path)
    ((_, (triton, flash)),) = bars.groups
    assert (triton.share, flash.share) == (1.0, pytest.approx(0.5, abs=0.01))
    assert "%" not in triton.note
    frame = 'stroke="var(--p-mute)"'
    assert frame not in drawn(bars, ["triton"], "bars")
    assert frame in drawn(replace(bars, framed=True), ["triton"], "bars")


@pytest.mark.parametrize(("peak", "says"), [(1e15, "%"), (1e6, "impossible")])
def test_a_bar_is_the_share_of_the_measured_peak(tmp_path: Path, peak: float, says: str) -> None:
    peaks = {"gemm_fp32_flops_per_s": peak, "copy_bytes_per_s": 1e12}
    path = run(tmp_path, calibration={"peaks": peaks})
    ((_, (triton, _)),) = bars_of(path).groups
    assert triton.backend == "triton"
    assert 0 < triton.share <= 1
    assert says in triton.note
    assert "measured peak of matrix products" in card_of(kernels, path).note


def test_other_questions_and_published_numbers_are_not_answered_so(tmp_path: Path) -> None:
    assert subject_of(kernels, run(tmp_path / "a", "How long may a sequence be?")).card is None
    names = ("title", "cited", "url", "licence", "date")
    source = dict.fromkeys(names, "somewhere")
    assert subject_of(kernels, run(tmp_path / "b", source=source)).card is None
