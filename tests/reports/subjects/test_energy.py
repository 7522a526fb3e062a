"""reports/subjects/energy.py: joules per call and token, or why there are none."""

from pathlib import Path

import pytest

from attnbench.reports.subjects import energy
from tests.made_runs import WINDOW, with_windows
from tests.reports.rendering import blocks_of, rows_and_meta, sentences, tables_of

JOULES = {"naive": 9e-3, "fused": 6e-3, "sdpa": 3e-3}


def with_energy(parent: Path, per_call_j: dict[str, list[float] | None]) -> Path:
    windows = {
        backend: [WINDOW | {"energy_j": joules and 1000 * joules} for joules in every or [None] * 3]
        for backend, every in per_call_j.items()
    }
    return with_windows(
        parent, windows, utilization_tier="host", missing={"energy_j": "no such counter here"}
    )


def spread(joules: float) -> list[float]:
    return [joules * noise for noise in (0.99, 1.0, 1.01)]


def costs_of(run: Path) -> list[energy.EnergyCost]:
    ((_, found),) = energy.energy_costs(*rows_and_meta(run))
    return found


def test_energy_per_call_and_token_and_the_ratio_to_the_scenarios_baseline(tmp_path: Path) -> None:
    run = with_energy(tmp_path, {backend: spread(joules) for backend, joules in JOULES.items()})
    naive, fused, sdpa = costs_of(run)
    assert fused.ratio is None  # the baseline
    assert naive.per_call_j.value == pytest.approx(9e-3)
    assert naive.per_call_j.low < 9e-3 < naive.per_call_j.high
    assert naive.per_token_j.value == pytest.approx(9e-3 / 2048)
    assert sdpa.ratio.value == pytest.approx(0.5)
    assert sdpa.ratio.low < 0.5 < sdpa.ratio.high
    blocks = blocks_of(energy, run)
    ratio = "a call of sdpa takes 0.50 times the energy of one of fused ("
    assert any(ratio in text for text in sentences(blocks))
    (shown,) = tables_of(blocks)
    assert str(shown.rows[0][2]).startswith("9.00 mJ (8.")
    assert str(shown.rows[0][3]).startswith("4.39 μJ (4.")


def test_one_window_has_no_interval_and_no_sentence(tmp_path: Path) -> None:
    run = with_energy(tmp_path, {"fused": [6e-3], "sdpa": [3e-3]})
    blocks = blocks_of(energy, run)
    assert not [text for text in sentences(blocks) if "times the energy" in text]
    (shown,) = tables_of(blocks)
    assert str(shown.rows[0][2]) == "6.00 mJ"


def test_a_baseline_without_energy_gives_way_to_the_first_that_has_it(tmp_path: Path) -> None:
    run = with_energy(tmp_path, {"fused": None, "naive": spread(9e-3), "sdpa": spread(3e-3)})
    assert [(cost.row["backend"], cost.ratio is None) for cost in costs_of(run)] == [
        ("naive", True),
        ("sdpa", False),
    ]
    texts = sentences(blocks_of(energy, run))
    assert any("Cases with windows and no energy" in text for text in texts)
