"""reports/cards/approximate.py: one dot per setting, error over time."""

from pathlib import Path

from attnbench.reports.cards import approximate
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card, Figure, Table
from tests.reports.fake_contrasts import run_of
from tests.reports.fake_inexact import inexact, layer, made
from tests.reports.fake_runs import quickstart


def card_of(run: Path) -> Card | None:
    read = [read_run(run)]
    return approximate.card(frame(read), run_meta(read))


def test_every_setting_is_one_dot_at_the_longest_n(tmp_path: Path) -> None:
    card = card_of(inexact(tmp_path))
    assert card is not None
    assert isinstance(card.picture, Figure)
    (panel,) = card.picture.panels
    assert [one.backend for one in panel.series] == ["linformer", "linformer:64", "performer"]
    assert all(len(one.x) == len(one.y) == 1 for one in panel.series)
    assert panel.x_label == "latency in ms, at N\u00a0=\u00a04k"


def test_the_sentence_gives_the_most_exact_setting_of_each_family(tmp_path: Path) -> None:
    card = card_of(inexact(tmp_path))
    assert card is not None
    text = card.sentence.replace("\u00a0", " ")
    assert text.startswith("At N = 4k linformer is off by 12 % and takes 0.")
    assert "; performer is off by 5 % and takes 0." in text
    assert "linformer:64" not in text


def test_an_output_that_carries_no_information_is_no_dot_and_the_note_says_why(
    tmp_path: Path,
) -> None:
    card = card_of(inexact(tmp_path, cosines={"linformer": 0.004, "linformer:64": -0.02}))
    assert card is not None
    assert isinstance(card.picture, Figure)
    assert [one.backend for one in card.picture.panels[0].series] == ["performer"]
    assert "linformer" not in card.sentence
    assert "No trade-off is drawn for linformer and linformer:64: " in card.note


def test_without_any_information_the_card_has_a_table_only(tmp_path: Path) -> None:
    run = inexact(tmp_path, backends=("sdpa", "linformer"), cosines={"linformer": 0.004})
    card = card_of(run)
    assert card is not None
    assert isinstance(card.picture, Table)
    assert "no approximation's output has anything in common with the exact one" in card.sentence


def test_runs_that_test_claims_answer_by_their_growth(tmp_path: Path) -> None:
    run = run_of(tmp_path, *(made("linformer", layer(n)) for n in (256, 512)), name="claims_linear")
    assert card_of(run) is None


def test_exact_runs_have_no_such_card(tmp_path: Path) -> None:
    assert card_of(quickstart(tmp_path, lengths=(128, 256))) is None
    assert card_of(inexact(tmp_path, backends=("sdpa", "rnn"))) is None
