"""reports/sections/heads.py: the cost of h heads against one, as sentences and a table."""

from pathlib import Path

from attnbench.reports.sections import heads as section
from attnbench.reports.sections import summary
from tests.made_runs import head_sweep, pruning, quickstart
from tests.reports.rendering import blocks_of, figures_of, sentences


def test_64_heads_of_one_run_stay_beside_8_heads_of_longer_problems_of_another(
    tmp_path: Path,
) -> None:
    runs = quickstart(tmp_path, lengths=(1024, 4096)), head_sweep(tmp_path)
    for part in (section, summary):
        texts = " ".join(sentences(blocks_of(part, *runs)))
        for backend in ("naive", "sdpa"):
            assert f"{backend} with 64 heads" in texts or f"{backend}: 64 heads cost" in texts
            assert f"{backend} with 8 heads" in texts or f"{backend}: 8 heads cost" in texts
    titles = [figure.title for figure in figures_of(blocks_of(section, *runs))]
    assert [("64 heads" in title, "8 heads" in title) for title in titles] == [
        (False, True),
        (True, False),
    ]


def test_the_unpruned_layer_is_among_its_pruned_ones(tmp_path: Path) -> None:
    """8 * 64 = d_model, which once gave the whole layer another problem than its pruned ones."""
    (figure,) = figures_of(blocks_of(section, pruning(tmp_path)))
    assert [line[2] for line in figure.table.rows] == ["1", "4", "8"]
