"""reports/cards/block.py: attention's share of a block."""

from pathlib import Path

from attnbench.reports.cards import block
from attnbench.reports.elements import Figure
from tests.reports.analysis.test_block_share import block_run
from tests.reports.fake_runs import quickstart
from tests.reports.rendering import card_of


def test_the_card_says_from_which_n_on_attention_is_more_than_half(tmp_path: Path) -> None:
    card = card_of(block, block_run(tmp_path))
    assert card is not None
    assert card.sentence.startswith(
        "Attention takes more than half of a block's time with fused from N = 512 on (less up to"
        " 128, half at about "
    )
    assert card.sentence.endswith("and with sdpa at no N up to 1k; by FLOPs above N = 256.")
    assert isinstance(card.picture, Figure)
    assert [one.backend for one in card.picture.panels[0].series] == ["fused", "sdpa"]


def test_what_is_undecided_does_not_read_as_if_it_were_so(tmp_path: Path) -> None:
    card = card_of(block, block_run(tmp_path, contended_blocks=99))
    assert card is not None
    assert card.sentence.startswith(
        "Whether attention takes more than half of a block's time: with fused undecided at N = 1k, "
    )


def test_runs_without_a_block_have_no_such_card(tmp_path: Path) -> None:
    assert card_of(block, quickstart(tmp_path)) is None
    assert card_of(block, block_run(tmp_path / "a", ("block",))) is None
