"""reports/sections/_checkpoint_heads.py: given models in "What heads learn"."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.elements import Figure, Maps, Table
from attnbench.reports.sections import trained_heads
from tests.reports.fake_checkpoints import looked_at, with_checkpoints
from tests.reports.fake_trainings import CLEAR
from tests.reports.rendering import blocks_of, markdown_of, page_of, sentences


def test_the_answer_names_who_is_missed_and_what_heads_look_at(tmp_path: Path) -> None:
    first, *_ = sentences(blocks_of(trained_heads, with_checkpoints(tmp_path, [looked_at()])))
    assert first.startswith("mine (gpt2, 2 blocks, 4 heads): loss 1.00 (0.85 to 1.15) nats,")
    assert "25.0 % right on 3 random tokens, said twice." in first
    assert "by 0.50 (0.47 to 0.53) without block 2 head 2; surely missed: 2 of 4." in first
    assert "Block 1 head 2 looks at the token before." in first
    assert first.endswith("Block 2 head 2 looks at what followed the same token before.")


def test_it_says_on_what_it_holds(tmp_path: Path) -> None:
    texts = " ".join(sentences(blocks_of(trained_heads, with_checkpoints(tmp_path, [looked_at()]))))
    assert "holds for the tokens that they were looked at with" in texts
    assert "2 or 3 would seem missed by chance" in texts


def test_a_tokenizer_that_could_not_be_read_is_said_and_an_older_run_has_nothing_to_say(
    tmp_path: Path,
) -> None:
    reason = "tokenizer.json cannot be read (no JSON), so tokens are called by their numbers"
    found = [looked_at(tokenizer_reason=reason), looked_at("other", tokenizer_reason=None)]
    texts = sentences(blocks_of(trained_heads, with_checkpoints(tmp_path, found)))
    assert [one for one in texts if "tokenizer" in one] == [f"mine: {reason}."]
    older = with_checkpoints(tmp_path / "older", [looked_at()])
    assert "tokenizer" not in " ".join(sentences(blocks_of(trained_heads, older)))


@pytest.mark.long
def test_maps_curves_and_every_head_are_shown(tmp_path: Path) -> None:
    run = with_checkpoints(tmp_path, [looked_at(), looked_at("other")])
    blocks = blocks_of(trained_heads, run)
    maps = [one for one in blocks if isinstance(one, Maps)]
    assert [one.title.partition(":")[0] for one in maps] == ["mine", "other"]
    assert [one.label for one in maps[0].maps] == ["block 1 head 2", "block 2 head 2"]
    assert maps[0].title == "mine: Block 2 head 2 continues what was said before"
    assert "a b c a b c" in maps[0].caption
    (figure,) = [one for one in blocks if isinstance(one, Figure)]
    assert [panel.title for panel in figure.panels] == ["mine", "other"]
    assert figure.panels[0].series[0].x == (0.0, 3.0, 4.0)
    tables = {one.title: one for one in blocks if isinstance(one, Table)}
    heads = tables["Every head of mine"]
    assert [(row[0], row[2]) for row in heads.rows] == [
        ("block 1 head 1", "not surely"),
        ("block 1 head 2", "yes"),
        ("block 2 head 1", "not surely"),
        ("block 2 head 2", "yes"),
    ]
    means = tables["Given models, means over heads (least to most)"]
    assert means.rows[0][:3] == ("mine", "12,345", "1.25 (0.50 to 2.00)")
    assert "What heads learn" in page_of(run)
    assert "mine (gpt2, 2 blocks" in markdown_of(run)


def test_they_stand_beside_models_that_were_trained_here(tmp_path: Path) -> None:
    given = {**looked_at(), "study": "checkpoint_heads"}
    own = [{**one, "study": "trained_heads"} for one in CLEAR]
    run = with_checkpoints(tmp_path, [*own, given])
    texts = sentences(blocks_of(trained_heads, run))
    assert texts[0].startswith("recall (")
    assert any(one.startswith("mine (gpt2") for one in texts)


def test_a_model_that_was_not_pruned_says_why(tmp_path: Path) -> None:
    none = {
        "single_sequence_loss_nats": None,
        "pruned_heads_left": None,
        "pruned_sequence_loss_nats": None,
        "removal_reason": "4 heads: removing each would take about 99 s, of at most 30 s",
    }
    run = with_checkpoints(tmp_path, [looked_at(**none)])
    first, *_ = sentences(blocks_of(trained_heads, run))
    assert "No head was removed: 4 heads: removing each would take about 99 s" in first
    assert not [one for one in blocks_of(trained_heads, run) if isinstance(one, Figure)]


def test_a_checkpoint_that_failed_has_its_reason(tmp_path: Path) -> None:
    run = with_checkpoints(tmp_path, [], status="timeout", reason="no answer within 60 s")
    (only,) = sentences(blocks_of(trained_heads, run))
    assert only == "study-checkpoint_heads-mine found nothing: no answer within 60 s."


@pytest.mark.long
@pytest.mark.parametrize(
    "broken",
    [
        {"single_sequence_loss_nats": [[[1.0] * 9]]},
        {"single_sequence_loss_nats": [["<b>", 1]]},
        {"pruned_heads_left": [1], "pruned_sequence_loss_nats": "x"},
        {"weight_rows": [[[2.0]]], "drawn_heads": [[0, 0]]},
        {"drawn_heads": [[0, 9], [7, 1]]},
        {"layers": [0]},
        {"layer_heads": [2, 2, 10**9]},
        {"layer_heads": []},
        {"sequence_loss_nats": []},
        {"checkpoint": "<script>alert(1)</script>", "model_type": 3, "token_source": None},
        {"entropy_nats": None, "previous_share": "x", "induction_share": [[None, None], []]},
        {"parameter_count": "many", "sentence": 3},
    ],
)
def test_what_is_missing_or_broken_is_left_out(tmp_path: Path, broken: dict[str, Any]) -> None:
    page = page_of(with_checkpoints(tmp_path, [looked_at(**broken)]))
    assert "<script>alert" not in page
