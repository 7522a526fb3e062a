"""reports/claims/subjects/claims.py: verdicts on claims, for runs that were made to test them."""

from pathlib import Path

from attnbench.reports.claims.subjects import claims
from tests.made_runs import pruning, training
from tests.reports.rendering import subject_of


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = (
        subject_of(claims, *some).card for some in ([run], [run, training(tmp_path / "b")])
    )
    assert alone is not None
    assert alone == beside
