"""reports/cards/ledger.py: verdicts on claims, for runs that were made to test them."""

from pathlib import Path

from attnbench.reports.cards import ledger
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card
from tests.made_runs import pruning, training


def card_of(*runs: Path) -> Card | None:
    read = [read_run(run) for run in runs]
    return ledger.card(frame(read), run_meta(read))


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = card_of(run), card_of(run, training(tmp_path / "b"))
    assert alone is not None
    assert alone == beside
