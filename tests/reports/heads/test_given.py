"""reports/heads: what is told of the heads of given models."""

from math import isnan
from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.data.run_meta import read_run, run_meta
from attnbench.reports.elements import Maps, Table
from attnbench.reports.heads.subjects.checkpoint_heads import subject
from attnbench.reports.subjects import Subject
from tests.made_runs import with_study

WHOLE = [1.0, 1.2, 0.9, 1.1]
SHARES = {"itself": 0.1, "near": 0.2, "first": 0.3, "far": 0.4}


def without(rise: float) -> list[float]:
    return [nats + rise + 0.01 * (-1) ** place for place, nats in enumerate(WHOLE)]


def finding(**other: Any) -> dict[str, Any]:
    """Layers of two heads and of one; one of them is needed."""
    return {
        "checkpoint": "mine",
        "layer_heads": [2, 1],
        "parameter_count": 1000,
        "token_source": "some tokens",
        **{f"{kind}_share": [[share, share / 2], [share]] for kind, share in SHARES.items()},
        "even_shares": [0.05, 0.2, 0.05, 0.7],
        "sequence_loss_nats": WHOLE,
        "single_sequence_loss_nats": [[without(0.0), without(0.5)], [without(-0.3)]],
        "pruned_heads_left": [3, 2, 0],
        "pruned_sequence_loss_nats": [WHOLE, without(0.1), without(2.0)],
        "pruned_saved_parameters": [0, 100, 300],
        "pruned_saved_cache_ratio": [0.0, 0.5, 1.0],
        **other,
    }


def told(tmp_path: Path, *findings: dict[str, Any]) -> Subject:
    names = {"study": "checkpoint_heads", "part": {"checkpoint": "mine"}}
    case = "study-checkpoint_heads-mine"
    run = with_study(tmp_path, findings=list(findings), case=case, **names)
    return subject([], run_meta([read_run(run)]))


def test_a_head_is_needed_if_the_loss_is_surely_higher_without_it(tmp_path: Path) -> None:
    card = told(tmp_path, finding()).card
    assert card
    assert card.sentence == (
        "Of the 3 heads of mine 1 is needed, most layer 1 head 2: without it the loss rises by 0.50"
        " (0.48 to 0.52) nats. With 2 left, the least important gone, it rises by 0.10 (0.079 to"
        " 0.12) nats; that saves 10.0 % of the parameters and 50.0 % of the cache."
    )


def test_low_layers_stand_above_high_ones_and_beside_them(tmp_path: Path) -> None:
    card = told(tmp_path, finding()).card
    assert card
    assert isinstance(card.picture, Maps)
    far = card.picture.maps[-1].rows
    assert far[0] == (0.4, 0.2)
    assert far[1][0] == 0.4
    assert isnan(far[1][1]), "there is no second head"
    assert isinstance(card.decisions, Table)
    low, high, even = card.decisions.texts
    assert (low[:2], low[-1]) == (("low layers", "1 of 2"), "30.0 %")
    assert (high[:2], high[-1]) == (("high layers", "0 of 1"), "40.0 %")
    assert even[-1] == "70.0 %"


def test_another_model_has_its_line_and_its_picture(tmp_path: Path) -> None:
    two = told(tmp_path, finding(), finding(checkpoint="other"))
    assert two.lines[0].startswith("Of the 3 heads of other")
    assert [one.title for one in two.blocks if isinstance(one, Maps)] == [
        "other: where its heads look, low layers above high ones"
    ]


@pytest.mark.parametrize("lacks", ["_share", "single_", "pruned_"])
def test_rows_that_lack_something_tell_the_rest(tmp_path: Path, lacks: str) -> None:
    known = {name: value for name, value in finding().items() if lacks not in name}
    card = told(tmp_path, known | {"removal_reason": "too many heads"}).card
    assert card
    assert isinstance(card.picture, Table) == (lacks == "_share")
    assert ("too many heads" in card.sentence) == (lacks == "single_")
    assert ("left" in card.sentence) == (lacks == "_share")
