"""reports/subjects/recurrence.py: steps and FLOPs."""

from pathlib import Path

import pytest

from attnbench.reports.data.row_groups import groups
from attnbench.reports.subjects import recurrence
from tests.made_runs import inexact
from tests.reports.rendering import rows_of


def test_a_step_has_its_time_and_rate_beside_the_fastest_attention(tmp_path: Path) -> None:
    (group,) = groups(rows_of(inexact(tmp_path)), "seq_len")
    first = recurrence.steps(group)[0]
    assert first.step_ms == pytest.approx(50e-3, rel=0.02)
    assert first.flops_per_s == pytest.approx(12 * 512**2 / 50e-6, rel=0.02)
    assert first.attention["backend"] == "sdpa"
