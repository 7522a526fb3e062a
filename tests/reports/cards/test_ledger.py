"""reports/cards/ledger.py: verdicts on claims, for runs that were made to test them."""

from pathlib import Path

from attnbench.reports.cards import ledger
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Table
from tests.reports.fake_claims import COPIES, MERGED, pruned
from tests.reports.fake_contrasts import pruning, run_of, training
from tests.reports.fake_runs import quickstart


def card_of(*runs: Path) -> Card | None:
    read = [read_run(run) for run in runs]
    return ledger.card(frame(read), run_meta(read))


def test_few_claims_are_spelled_out_with_their_numbers(tmp_path: Path) -> None:
    card = card_of(pruning(tmp_path))
    assert card is not None
    text = card.sentence.replace("\u00a0", " ")
    assert text.startswith(
        'C14, "Removing heads saves cost in proportion", depends: supported for fused bytes (1 of 8'
    )
    assert "; refuted for fused time (1 of 8 heads at N = 1k: 0.25 times (" in text
    assert isinstance(card.picture, Table)
    assert [row[:2] for row in card.picture.rows] == [("C14", "depends")]


def test_only_runs_that_test_claims_have_the_card(tmp_path: Path) -> None:
    assert card_of(quickstart(tmp_path / "a", lengths=(128, 256))) is None
    assert card_of(training(tmp_path / "b")) is None
    assert card_of(run_of(tmp_path / "c", name="claims_layer")) is None


def test_runs_of_two_devices_are_one_card_that_says_so(tmp_path: Path) -> None:
    read = [read_run(pruning(tmp_path / name)) for name in "ab"]
    meta = run_meta(read)
    alone = ledger.card(frame(read), meta)
    first, second = meta
    elsewhere = {**meta[second]["environment"], "cpu": "Another CPU"}
    apart = {first: meta[first], second: {**meta[second], "environment": elsewhere}}
    card = ledger.card(frame(read), apart)
    assert alone is not None
    assert card is not None
    assert "all devices" not in alone.note
    assert "all devices and environments together" in card.note


def test_beside_other_runs_the_card_is_about_those_that_test_claims(tmp_path: Path) -> None:
    run = pruning(tmp_path / "a")
    alone, beside = card_of(run), card_of(run, training(tmp_path / "b"))
    assert alone is not None
    assert alone == beside


def test_parts_that_agree_do_not_repeat_the_verdict(tmp_path: Path) -> None:
    made = [pruned(8, 8.0, 800), pruned(1, 5.0, 600)]
    run = run_of(tmp_path, *made, name="claims_pruning")
    card = card_of(run)
    assert card is not None
    assert '"Removing heads saves cost in proportion", is refuted for fused time and fused' in (
        card.sentence
    )


def test_of_many_claims_each_stands_with_the_numbers_that_decide_it(tmp_path: Path) -> None:
    made = [pruned(8, 8.0, 800), pruned(4, 4.0, 800), pruned(1, 1.0, 100)]
    read = [read_run(run_of(tmp_path, *made, name="claims_pruning"))]
    equal = {"study": "layer_properties", "property": "rows_sum_to_one", "holds": True}
    studies = [*COPIES, *MERGED, equal | {"worst_error_ratio": 1e-15}]
    meta = {name: {**run, "studies": studies} for name, run in run_meta(read).items()}
    card = ledger.card(frame(read), meta)
    assert card is not None
    assert isinstance(card.picture, Table)
    shown = {row[0]: row[2].replace("\u00a0", " ").split(" · ") for row in card.picture.rows}
    assert list(shown) == ["C6", "C7", "C14"]
    assert shown["C6"][1].startswith("merged supported: 0 B copied at h = 8; batched refuted: ")
    assert shown["C7"][1] == "random cases: rows sum to one: off by at most 1.00e-15"
    times, _, sizes = shown["C14"][1].partition("; ")
    assert times.startswith("fused, time supported: 1 of 8 heads at N = 512: 0.12")
    assert sizes == (
        "fused, bytes: supported: 1 of 8 heads at N = 512: 0.12 times the bytes (0.12 would be in"
        " proportion); refuted: 4 of 8 heads at N = 512: 1.00 times the bytes (0.50 would be in"
        " proportion)"
    )
