"""reports/contrasts.py, of h heads against one: counted, or by an equivalence test."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.reports import contrasts as heads
from attnbench.reports.data.load import frame
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import Row, records
from attnbench.reports.formatting import number_text
from tests.made_runs import case, head_sweep, problem, row, write_run
from tests.reports.rendering import rows_of


def one(rows: list[Row], **wanted: Any) -> Row:
    (found,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return found


def cost(
    parent: Path, ratio: float, *, noise: float = 0.01, processes: int = 6, **changes: Any
) -> heads.Contrast:
    """8 heads against one, `ratio` times the time, in processes whose blocks drift together."""
    random, cases = Random(3), [case("fused", problem(256, h)) for h in (1, 8)]
    drift = [[random.lognormvariate(0, 0.1) for _ in range(6)] for _ in range(processes)]
    times = [
        [[[d * random.lognormvariate(0, noise) * r] for d in process] for process in drift]
        for r in (1.0, ratio)
    ]
    rows = [row(one, block_ms=block_ms) for one, block_ms in zip(cases, times, strict=True)]
    rows[1] |= changes
    ((_, costs),) = heads.against_one_head(
        records(frame([read_run(write_run(parent, cases, rows))]))
    )
    return costs[-1]


@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_disturbed_times_of_several_processes_decide_nothing(tmp_path: Path, ratio: float) -> None:
    """They were the same, or more, as if nothing else had run."""
    calm, loud = cost(tmp_path / "a", ratio), cost(tmp_path / "b", ratio, contended_blocks=99)
    found = loud.same_time
    assert found is not None
    assert found.word == "undecided"
    assert found.text.endswith(", while other work disturbed most blocks")
    quiet = calm.same_time
    assert quiet is not None
    assert quiet.word == ("same" if ratio == 1 else "more")


def test_heads_are_compared_with_one_head_of_the_same_backend(tmp_path: Path) -> None:
    rows = rows_of(head_sweep(tmp_path))
    ((group, costs),) = heads.against_one_head(rows)
    assert [cost.heads for cost in costs if cost.backend == "sdpa"] == [2, 4, 8, 16, 32, 64]
    assert {cost.counted("work_flops") for cost in costs} == {1.0}
    fused = next(cost for cost in costs if cost.backend == "fused" and cost.heads == 8)
    assert (
        fused.peak_bytes
        == one(rows, backend="fused", heads=8)["peak_bytes"]
        / one(rows, backend="fused", heads=1)["peak_bytes"]
    )
    assert fused.time is not None
    assert fused.time.paired
    assert [cost.heads for cost in heads.most_heads(costs) if cost.backend == "fused"] == [32]
    assert group.problem["seq_len"] == 2048


@pytest.mark.parametrize(
    ("ratio", "noise", "answer"),
    [
        (1.0, 0.01, "same"),
        (1.2, 0.01, "more"),
        (0.8, 0.01, "less"),
        (1.05, 0.01, "undecided"),
        (1.0, 0.2, "undecided"),
        (1.02, 0.005, "same"),
    ],
)
def test_equal_times_need_evidence_of_equivalence(
    tmp_path: Path, ratio: float, noise: float, answer: str
) -> None:
    assert answered(cost(tmp_path, ratio, noise=noise)) == answer


def answered(of: heads.Contrast) -> str:
    found = of.same_time
    assert found is not None
    assert found.ratio.low <= found.ratio.value <= found.ratio.high
    assert f"({number_text(found.ratio.low)} to {number_text(found.ratio.high)})" in found.text
    return found.word


def test_one_process_shows_only_what_processes_cannot_explain(tmp_path: Path) -> None:
    found = cost(tmp_path / "a", 1.0, processes=1)
    assert answered(found) == "undecided"
    assert answered(cost(tmp_path / "b", 1.2, processes=1)) == "undecided"
    assert answered(cost(tmp_path / "c", 1.5, processes=1)) == "more"


def test_times_of_different_blocks_need_a_narrower_interval(tmp_path: Path) -> None:
    # their drift no longer cancels
    assert answered(cost(tmp_path / "a", 1.0, session="another")) == "undecided"
    assert answered(cost(tmp_path / "b", 3.0, session="another")) == "more"


def test_scores_that_are_kept_between_calls_count_as_bytes_of_more_heads(tmp_path: Path) -> None:
    same = {"peak_bytes": 1000, "outside_bytes": 0}
    cases = [case("keeps", problem(256, h)) for h in (1, 8)]
    rows = [row(one, **same, workspace_bytes=1000 * one["heads"]) for one in cases]
    ((_, costs),) = heads.against_one_head(rows_of(write_run(tmp_path, cases, rows)))
    assert costs[-1].peak_bytes == 4.5
