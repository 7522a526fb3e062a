"""reports/subjects/energy.py: joules per call and token, or why there are none."""

from pathlib import Path

import pytest

from attnbench.reports.subjects import energy
from tests.made_runs import WINDOW, with_windows
from tests.reports.rendering import blocks_of, rows_and_meta, tables_of


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


def test_one_window_has_no_interval(tmp_path: Path) -> None:
    run = with_energy(tmp_path, {"fused": [6e-3], "sdpa": [3e-3]})
    (shown,) = tables_of(blocks_of(energy, run))
    assert str(shown.rows[0][1]) == "6.00 mJ"


def test_a_baseline_without_energy_gives_way_to_the_first_that_has_it(tmp_path: Path) -> None:
    run = with_energy(tmp_path, {"fused": None, "naive": spread(9e-3), "sdpa": spread(3e-3)})
    naive, sdpa = costs_of(run)
    assert (naive.row["backend"], naive.ratio) == ("naive", None)
    assert naive.per_token_j.value == pytest.approx(9e-3 / 2048)  # two sequences of 1k
    assert sdpa.ratio.value == pytest.approx(1 / 3)
    assert sdpa.ratio.low < 1 / 3 < sdpa.ratio.high
