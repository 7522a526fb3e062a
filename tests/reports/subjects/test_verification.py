"""reports/subjects/verification.py: drafted tokens beside one step."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.reports.subjects import verification
from tests.made_runs import made, problem, run_of
from tests.reports.rendering import rows_of, subject_of

KEYS = 1024


def case(drafted: int, ms: float, backend: str = "sdpa", **axes: Any) -> Any:
    axes = {"kv_seq_len": KEYS, "causal": True, "causal_align": "bottom_right"} | axes
    return made(backend, problem(drafted, **axes), ms)


def test_a_chain_and_a_tree_are_over_one_step(tmp_path: Path) -> None:
    run = run_of(tmp_path, case(1, 10.0), case(8, 13.0), case(8, 26.0, mask="tree", window=2))
    found = verification.verifications(rows_of(run))
    assert [verification.shape(one) for one in found] == [
        "in a chain",
        "in a tree of 2 children each",
    ]
    assert [one.time.value for one in found] == pytest.approx([1.3, 2.6], rel=0.03)


def test_the_sentence_is_about_the_backend_that_took_least(tmp_path: Path) -> None:
    others = (case(1, 20.0, "fused"), case(8, 90.0, "fused"))
    (line,) = subject_of(
        verification, run_of(tmp_path, *others, case(1, 10.0), case(8, 13.0))
    ).lines
    assert line.startswith("sdpa verifies 8 drafted tokens in 1.3")
    assert "fused" not in line


@pytest.mark.parametrize(
    "others",
    [
        (case(8, 13.0),),  # no step
        (case(1, 10.0), case(8, 13.0, kv_seq_len=2 * KEYS)),  # over other keys
        (case(1, 10.0), case(256, 90.0)),  # a chunk of a prompt
        (case(1, 10.0), case(8, 13.0, mask="local", window=4)),
    ],
)
def test_nothing_is_said_without_a_step_over_the_same_keys(others: Any, tmp_path: Path) -> None:
    run = run_of(tmp_path, *others)
    assert verification.verifications(rows_of(run)) == []
    assert subject_of(verification, run).lines == ()
