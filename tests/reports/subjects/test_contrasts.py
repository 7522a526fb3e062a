"""reports/subjects/contrasts.py and heads.py: what a setting costs, and h heads against one."""

from pathlib import Path

from attnbench.reports.elements import Card
from attnbench.reports.subjects import contrasts, heads
from tests.made_runs import (
    head_sweep,
    made,
    problem,
    quickstart,
    run_of,
    training,
)
from tests.reports.rendering import figures_of, subject_of, tables_of

# ---- heads --------------------------------------------------------------------------------------


def words(found: Card) -> dict[tuple[str, str], str]:
    return {
        (one.group, one.label): one.dot.word if one.dot else one.missing
        for one in found.picture.rows
    }


def test_a_batch_has_its_tokens_per_second(tmp_path: Path) -> None:
    """Four sequences in twice the time of one."""
    pairs = [made("sdpa", problem(512, batch=b), ms, session="a") for b, ms in ((1, 1.0), (4, 2.0))]
    told = subject_of(contrasts, run_of(tmp_path, *pairs, contrast=("batch",)))
    assert "Tokens per second: more for sdpa (×2.0" in told.card.sentence
    assert words(told.card)["Tokens per second", "sdpa"] == "more"
    (table,) = tables_of(list(told.blocks))
    assert len(table.rows) == 1
    assert str(table.rows[0][table.columns.index("tokens ratio")]).startswith("2.0")


def test_64_heads_of_one_run_stay_beside_8_heads_of_longer_problems_of_another(
    tmp_path: Path,
) -> None:
    told = subject_of(heads, quickstart(tmp_path, lengths=(1024, 4096)), head_sweep(tmp_path))
    (figure,) = figures_of(list(told.blocks))
    assert "64 heads" in figure.title
    (table,) = tables_of(list(told.blocks))
    assert {line[2] for line in table.rows} == {2, 4, 8, 16, 32, 64}


def test_each_scope_has_its_own_answer_and_is_named(tmp_path: Path) -> None:
    told = subject_of(contrasts, training(tmp_path))
    said = [told.card.sentence, *told.lines]
    assert ["in the core" in one for one in said] == [True, False]
    assert ["in the layer" in one for one in said] == [False, True]
    assert ["×2.5" in one for one in said] == [False, True]
