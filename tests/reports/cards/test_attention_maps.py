"""reports/cards/attention_maps.py: the textbook's layer, its cost and its heads."""

from pathlib import Path
from typing import Any

from attnbench.reports.cards import attention_maps
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from attnbench.reports.elements import Card
from tests.reports.fake_contrasts import run_of, timed
from tests.reports.fake_runs import problem

MAPS = [
    {
        "study": "attention_maps",
        "head": head,
        "mean_entropy_nats": entropy,
        "weight_rows": [[0.5, 0.5], [0.25, 0.75]],
    }
    for head, entropy in ((1, 0.6), (2, 0.3))
]


def card_of(run: Path, studies: list[dict[str, Any]]) -> Card | None:
    read = [read_run(run)]
    meta = {name: {**one, "studies": studies} for name, one in run_meta(read).items()}
    return attention_maps.card(frame(read), meta)


def textbook(parent: Path, *lengths: int) -> Path:
    return run_of(
        parent,
        *(
            timed("fused", problem(n, scope=scope), ms)
            for n in lengths
            for scope, ms in (("core", 0.02), ("layer", 0.1))
        ),
        name="textbook",
    )


def test_the_sentence_has_the_times_of_core_and_layer_and_the_heads(tmp_path: Path) -> None:
    card = card_of(textbook(tmp_path, 10), MAPS)
    assert card is not None
    text = card.sentence.replace("\u00a0", " ")
    assert text.startswith("At N = 10 fused takes for the core ")
    assert " μs) and for the layer " in text
    assert text.endswith(
        "Of 2 heads with random weights, head 2 attends to the fewest tokens (1.35) and head 1 to"
        " the most (1.82), of 2."
    )


def test_several_lengths_or_no_maps_have_no_such_card(tmp_path: Path) -> None:
    assert card_of(textbook(tmp_path / "a", 10), []) is None
    assert card_of(textbook(tmp_path / "b", 10, 20), MAPS) is None
