"""reports/claims/times.py: a GRU against attention on short sequences."""

from pathlib import Path

from tests.made_runs import problem
from tests.reports.fake_claims import (
    layer,
    ledger_of,
    timed,
)


def test_a_gru_needs_more_flops_than_attention_below_the_width(tmp_path: Path) -> None:
    short = {"d_model": 512, "scope": "layer"}
    gru = {"exactness": "other"}  # as its rows say
    made = [
        timed("rnn", 5.0, problem(64, 1, **short), **gru),
        timed("sdpa", 1.0, problem(64, 1, **short)),
    ]
    parts = {part.of: part for part in ledger_of(tmp_path / "a", *made)["Q11"].parts}
    assert parts["FLOPs of a GRU"].verdict == "refuted"
    assert parts["time of a GRU against sdpa"].verdict == "refuted"
    long = [
        timed("rnn", 1.0, problem(1024, 1, **short), **gru),
        timed("sdpa", 1.0, problem(1024, 1, **short)),
    ]
    assert ledger_of(tmp_path / "b", *long)["Q11"].verdict == "not run"
    assert ledger_of(tmp_path / "c", timed("sdpa", 1.0, layer(64)))["Q11"].verdict == "not run"
