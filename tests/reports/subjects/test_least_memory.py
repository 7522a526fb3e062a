"""reports/subjects/memory.py: the fewest peak bytes, by the shapes of a scenario."""

from pathlib import Path

from attnbench.reports.elements import Card, Table
from attnbench.reports.subjects import memory
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import subject_of


def card_of(run: Path) -> Card | None:
    return subject_of(memory, run).card


def shapes(parent: Path) -> Path:
    """fused needs 8 times the bytes of sdpa on the first shape, and as many on the second."""
    sizes = {("fused", 8): 800, ("sdpa", 8): 100, ("fused", 4): 50, ("sdpa", 4): 50}
    return run_of(
        parent,
        *(
            made(backend, problem(1024 if heads == 8 else 512, heads), 1.0, peak_bytes=size)
            for (backend, heads), size in sizes.items()
        ),
        name="backends",
    )


def test_equal_bytes_share_the_first_place(tmp_path: Path) -> None:
    card = card_of(shapes(tmp_path))
    assert card is not None
    assert card.sentence == (
        "Of exact backends, sdpa in 2 of 2 and fused in 1 of 2 need the fewest peak bytes; others"
        " need up to 8.00 times those of sdpa."
    )
    assert isinstance(card.picture, Table)
    assert len(card.picture.rows) == 2
    assert len(card.picture.strong) == 3
