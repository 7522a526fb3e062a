"""reports/analysis/ratio.py: paired within a session, otherwise marked as unpaired."""

from math import exp, hypot, log, nan
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.stats import ratio_interval
from attnbench.reports.analysis.ratio import Ratio, time_ratio
from attnbench.reports.data.row_groups import Row
from tests.reports.fake_runs import quickstart
from tests.reports.rendering import rows_of


def one(rows: list[Row], **wanted: Any) -> Row:
    (found,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return found


def test_a_ratio_is_paired_within_a_session_and_marked_where_it_is_not(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path))
    fused, sdpa = (
        one(rows, backend=backend, seq_len=1024, heads=8) for backend in ("fused", "sdpa")
    )
    paired, expected = time_ratio(fused, sdpa), ratio_interval(fused["block_ms"], sdpa["block_ms"])
    assert paired is not None
    assert (paired.value, paired.low, paired.high, paired.paired) == (
        expected.value,
        expected.low,
        expected.high,
        True,
    )
    unpaired = time_ratio(fused, sdpa | {"session": "another"})
    assert unpaired is not None
    reach = hypot(
        *(log(row["latency_high_ms"] / row["latency_low_ms"]) / 2 for row in (fused, sdpa))
    )
    assert unpaired.high == pytest.approx(unpaired.value * exp(reach))
    assert unpaired.high / unpaired.low > paired.high / paired.low
    assert unpaired.text.endswith("unpaired")


def test_rows_without_a_session_are_not_paired(tmp_path: Path) -> None:
    rows = rows_of(quickstart(tmp_path, lengths=(128,)))
    found = time_ratio(rows[0] | {"session": None}, rows[1] | {"session": None})
    assert found is not None
    assert not found.paired


@pytest.mark.parametrize(
    ("low", "high", "clear"),
    [(1.1, 1.3, True), (0.7, 0.9, True), (0.9, 1.1, False), (1.0, 1.2, False), (nan, nan, False)],
)
def test_a_winner_needs_an_interval_that_leaves_out_one(
    low: float, high: float, clear: bool
) -> None:
    assert Ratio(value=1.2, low=low, high=high, paired=True, note="").clear is clear
