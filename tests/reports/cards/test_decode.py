"""reports/cards/decode.py: the share of bandwidth, where runs are about decode."""

from pathlib import Path

import pytest

from attnbench.reports.cards import decode
from attnbench.reports.elements import Figure
from tests.reports.fake_contrasts import timed
from tests.reports.fake_decode import LENGTHS, MEMORY, decode_run
from tests.reports.fake_runs import problem, quickstart
from tests.reports.rendering import card_of, markdown_of, page_of, section_of, summary_of, text_of


def test_the_card_draws_rates_and_the_measured_bandwidth_as_a_line(tmp_path: Path) -> None:
    card = card_of(decode, decode_run(tmp_path))
    assert card is not None
    assert card.sentence.startswith(
        "At N_kv\u00a0=\u00a08k, h_kv\u00a0=\u00a0h sdpa reaches 50.0 %"
    )
    assert isinstance(card.picture, Figure)
    for panel in card.picture.panels:
        assert panel.unit == "bytes_per_s"
        assert panel.line == (MEMORY, "measured: 20.0 GB/s")
        assert {series.x for series in panel.series} == {LENGTHS}
        assert all(len(series.low) == len(LENGTHS) for series in panel.series)


def test_lengths_that_fit_in_the_cache_are_marked_and_the_mark_explained(tmp_path: Path) -> None:
    card = card_of(decode, decode_run(tmp_path / "some"))
    assert card is not None
    assert isinstance(card.picture, Figure)
    assert [row[1] for row in card.picture.table.rows] == ["512*", "2k", "8k", "512*", "2k*", "8k"]
    assert card.sentence.endswith(
        "marked * in the table fit in the CPU's cache, so more than 100 % is possible."
    )
    none = card_of(decode, decode_run(tmp_path / "none", cache_bytes=None))
    assert none is not None
    assert "*" not in none.sentence


def test_without_a_measured_bandwidth_there_is_no_line_and_the_command(tmp_path: Path) -> None:
    card = card_of(decode, decode_run(tmp_path, calibrated={}))
    assert card is not None
    assert isinstance(card.picture, Figure)
    assert {panel.line for panel in card.picture.panels} == {None}
    assert "attnbench doctor --calibrate" in card.sentence
    assert "100 %" not in card.sentence
    assert card.sentence.endswith("fit in the CPU's cache, so theirs is no rate of memory.")
    assert all(" GB/s (" in cell for row in card.picture.table.rows for cell in row[2:])


def test_runs_that_are_about_something_else_have_no_such_card(tmp_path: Path) -> None:
    assert card_of(decode, quickstart(tmp_path / "a")) is None
    others = [timed("sdpa", problem(n), 1.0) for n in range(512, 512 + 12)]
    assert card_of(decode, decode_run(tmp_path / "b", more=others)) is None
    assert card_of(decode, decode_run(tmp_path / "c", more=others[:11])) is not None
    assert card_of(decode, decode_run(tmp_path / "d", minimal_bytes=None)) is None


@pytest.mark.long
def test_the_page_the_terminal_and_markdown_have_it_once(tmp_path: Path) -> None:
    run = decode_run(tmp_path)
    said = "reaches 50.0 %"
    assert said in text_of(page_of(run))
    assert said not in section_of(page_of(run), "decode")
    assert sum(said in text for text in summary_of(run)) == 1
    assert markdown_of(run).count(said) == 1
