"""reports/claims/times.py: whether removed heads save in proportion."""

from pathlib import Path

import pytest

from attnbench.reports.claims.verdict import (
    ClaimVerdict,
)
from tests.made_runs import problem
from tests.reports.fake_claims import Made, ledger_of, pruned, timed

PRUNED: list[tuple[list[Made], ClaimVerdict]] = [
    ([pruned(8, 8.0, 800), pruned(4, 4.0, 400), pruned(1, 1.0, 100)], "supported"),
    ([pruned(8, 8.0, 800), pruned(4, 6.0, 700), pruned(1, 5.0, 600)], "refuted"),
    ([pruned(8, 8.0, 800), pruned(4, 4.0, 700)], "depends"),
    # what is kept between calls counts
    ([pruned(8, 8.0, 800), pruned(4, 4.0, 400, workspace_bytes=400)], "depends"),
    # one has nothing to be held against
    (
        [pruned(8, 8.0, 800), pruned(4, 4.0, 400), pruned(4, 4.0, 400, seq_len=1024)],
        "supported",
    ),
    ([pruned(8, 8.0, 800)], "not run"),
    (
        [
            timed("fused", 8.0, problem(512, 8, scope="layer")),
            timed("fused", 4.0, problem(512, 4, scope="layer")),
        ],
        "not run",
    ),
]


@pytest.mark.parametrize(("made", "verdict"), PRUNED)
def test_pruned_heads_save_in_proportion_or_not(
    tmp_path: Path, made: list[Made], verdict: str
) -> None:
    claim = ledger_of(tmp_path, *made)["C14"]
    assert claim.verdict == verdict
    assert all(" would be in proportion)" in part.numbers for part in claim.parts)
