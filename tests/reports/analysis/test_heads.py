"""Whether h heads cost one head: in FLOPs and bytes by counting, in time by an equivalence test."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.reports.analysis import heads
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import records
from attnbench.reports.elements import Table, Text
from attnbench.reports.sections import heads as section

from tests.reports.fake_runs import case, head_sweep, problem, row, write_run


def cost(
    parent: Path, ratio: float, *, noise: float = 0.01, blocks: int = 8, **changes: Any
) -> heads.HeadCost:
    """8 heads against one, `ratio` times the time, in blocks that drift together."""
    random, cases = Random(3), [case("fused", problem(256, h)) for h in (1, 8)]
    drift = [random.lognormvariate(0, 0.1) for _ in range(blocks)]
    times = [[[[d * random.lognormvariate(0, noise) * r] for d in drift]] for r in (1.0, ratio)]
    rows = [row(one, block_ms=block_ms) for one, block_ms in zip(cases, times, strict=True)]
    rows[1] |= changes
    ((_, costs),) = heads.comparable(records(frame([read_run(write_run(parent, cases, rows))])))
    return costs[-1]


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [
        (1.0, 0.01, "yes"),
        (1.2, 0.01, "no"),
        (0.8, 0.01, "no"),
        (1.05, 0.01, "undecided"),
        (1.0, 0.2, "undecided"),
        (1.02, 0.005, "yes"),
    ],
)
def test_the_same_time_is_a_claim_that_must_be_shown(
    tmp_path: Path, ratio: float, noise: float, answer: str
) -> None:
    assert heads.same_time(cost(tmp_path, ratio, noise=noise)) == answer


def test_one_block_shows_nothing(tmp_path: Path) -> None:
    assert heads.same_time(cost(tmp_path, 1.0, blocks=1)) == "undecided"


def test_times_of_different_blocks_need_a_narrower_interval(tmp_path: Path) -> None:
    assert (
        heads.same_time(cost(tmp_path / "a", 1.0, session="another")) == "undecided"
    )  # their drift no longer cancels
    assert heads.same_time(cost(tmp_path / "b", 3.0, session="another")) == "no"


def test_each_backend_is_answered_in_one_sentence(tmp_path: Path) -> None:
    found = cost(tmp_path, 1.2)
    said = heads.answer(found)
    assert said.startswith("fused: 8 heads cost as many FLOPs as one head, ")
    assert "times the peak bytes and more time: 1.2" in said
    assert "less time: " in heads.answer(cost(tmp_path / "b", 0.8))
    assert "the same time within 5 %: 1.0" in heads.answer(cost(tmp_path / "c", 1.0))
    assert "a time that may be the same or not: " in heads.answer(
        cost(tmp_path / "d", 1.0, noise=0.2)
    )


def test_the_section_has_the_sentences_and_a_column_for_the_answer(tmp_path: Path) -> None:
    read = read_run(head_sweep(tmp_path))
    found = list(section.render(frame([read]), {read.meta["run"]: read.meta}))
    said = [block.text for block in found if isinstance(block, Text)]
    assert sum("heads cost as many FLOPs as one head" in text for text in said) == 3
    tables = [block for block in found if isinstance(block, Table)] + [
        block.table for block in found if hasattr(block, "table")
    ]
    assert tables
    place = tables[0].columns.index("same within 5 %")
    assert {line[place] for line in tables[0].rows} <= {"", "yes", "no", "undecided"}
    assert {line[place] for line in tables[0].rows if line[2] == "1"} == {""}
