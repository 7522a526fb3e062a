"""reports/subjects/recurrence.py: steps, FLOPs and crossovers."""

from pathlib import Path

import pytest

from attnbench.reports.subjects import recurrence
from tests.made_runs import inexact
from tests.reports.rendering import rows_of


def test_a_recurrent_layer_does_as_many_flops_as_attention_where_n_is_d(tmp_path: Path) -> None:
    (group,) = recurrence.recurring(rows_of(inexact(tmp_path)))
    assert recurrence.even_by_flops(group) == 512
    assert (
        recurrence.finding(group)
        == "rnn is slower than fused and sdpa at every N from 256 to 4k; it does fewer FLOPs above"
        " N\u00a0=\u00a0512"
    )
    first = recurrence.steps(group)[0]
    assert first.step_ms == pytest.approx(50e-3, rel=0.02)
    assert first.flops_per_s == pytest.approx(12 * 512**2 / 50e-6, rel=0.02)
    assert first.attention is not None
    assert first.attention["backend"] == "sdpa"


def test_a_tie_is_not_called_slower(tmp_path: Path) -> None:
    """With the same times at N = 256, and slower at every other."""
    rows = rows_of(inexact(tmp_path, backends=("sdpa", "rnn")))
    short = {row["backend"]: row for row in rows if row["seq_len"] == 256}
    short["rnn"]["block_ms"] = short["sdpa"]["block_ms"]
    (group,) = recurrence.recurring(rows)
    text = recurrence.finding(group).replace("\u00a0", " ")
    assert text.startswith("rnn is not clearly faster than sdpa up to N = 4k;")
