"""reports/subjects/growth.py: exponents along any size from two values on, needs at longer N."""

from math import log2
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import fastest
from attnbench.reports.subjects import growth as section
from attnbench.reports.subjects.growth import growth_along, joint_finding
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of, subject_of, tables_of

SIZES: dict[str, list[dict[str, Any]]] = {
    "kv_seq_len": [{"kv_seq_len": 4096}, {"kv_seq_len": 8192}],
    "d_model": [{"d_model": 512}, {"d_model": 1024}],
    "batch": [{"batch": 1}, {"batch": 2}],
    "d_k": [{"d_k": 32, "d_v": 32}, {"d_k": 64, "d_v": 64}],
}


@pytest.mark.parametrize("axis", SIZES)
@pytest.mark.parametrize(
    ("ratio", "name"), [(1.0, "constant"), (2.0, "linear"), (4.0, "quadratic")]
)
def test_the_exponent_along_every_size_is_measured_from_two_values(
    tmp_path: Path, axis: str, ratio: float, name: str
) -> None:
    pairs = [
        made("fused", problem(1024, **SIZES[axis][place]), (1, ratio)[place]) for place in (1, 0)
    ]
    rows = rows_of(run_of(tmp_path, *pairs))
    ((_, (one,)),) = growth_along(rows, axis)
    assert one.last == 2 * one.first
    assert one.exponent.low < log2(ratio) + 1e-9 or ratio == 1
    assert one.exponent.value == pytest.approx(log2(ratio), abs=0.05)
    assert one.name == name


def test_disturbed_times_have_an_exponent_and_no_name(tmp_path: Path) -> None:
    pairs = [
        made("fused", problem(1024, batch=batch), float(batch), contended_blocks=99)
        for batch in (1, 2)
    ]
    found = growth_along(rows_of(run_of(tmp_path, *pairs)), "batch")
    ((_, (one,)),) = found
    assert one.name == ""
    text = joint_finding(found)
    assert "linear" not in text


def test_one_value_and_failed_values_have_no_growth(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        made("fused", problem(1024, batch=1), 1.0),
        made("fused", problem(1024, batch=2), None),
    )
    assert growth_along(rows_of(run), "batch") == []


def test_along_an_axis_that_another_follows_times_are_drawn_and_no_growth_is_told(
    tmp_path: Path,
) -> None:
    """As FlashAttention's papers do: 16k tokens in all, so the batch shrinks as N grows."""
    shapes = [problem(n, batch=16384 // n) for n in (512, 1024, 2048, 4096, 8192)]
    run = run_of(tmp_path, *(made("fused", of, of["seq_len"] / 100) for of in shapes))
    rows = rows_of(run)
    assert [growth_along(rows, axis) for axis in ("seq_len", "batch")] == [[], []]
    found = subject_of(section, run)
    assert (found.card, found.lines) == (None, ())
    assert not any("time" in table.title.lower() for table in tables_of(found.blocks))
    card = subject_of(fastest, run).card
    assert card.subtitle == "of a call; B\u00a0=\u00a016\u202f384 / N"
    ((series,),) = (panel.series for panel in card.picture.panels)
    assert len(series.x) == 5


def test_each_size_of_a_grid_has_its_sentence(tmp_path: Path) -> None:
    """N and d_model by exponents; the batch is a contrast, which another section tells."""
    pairs = [
        made("fused", problem(n, d_model=d, batch=b), n * n * d * b / 2**26)
        for n in (512, 1024)
        for d in (256, 512)
        for b in (1, 2)
    ]
    run = run_of(tmp_path, *pairs, name="growth", contrast=("batch",))
    card = subject_of(section, run).card
    assert subject_of(section, run_of(tmp_path / "other", *pairs, contrast=("batch",))).card is None
    lines = card.sentence.split("Time grows as ")[1:]
    assert [line.split("^")[0] for line in lines] == ["N", "d_model"]
    assert "B\u00a0=\u00a02, d_model\u00a0=\u00a0512, fused 2.00" in lines[0]
    assert "B\u00a0=\u00a02, N\u00a0=\u00a01\u202f024, fused 1.0" in lines[1]
