"""Environments of a run compared: right if the truth is known, and as in attnbench compare."""

from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.reports.comparison.compare import Comparison, compare_environments, compare_runs
from attnbench.reports.data.load import rows_of
from attnbench.reports.data.read import read_run
from attnbench.reports.data.row_groups import by_environment
from attnbench.reports.data.run_meta import run_meta
from tests.made_runs import quickstart, read_rows, two_environments, write_rows


def comparisons(run: Path) -> list[Comparison]:
    read = [read_run(run)]
    return compare_environments(rows_of(read), run_meta(read))


def verdicts(found: Comparison) -> dict[str, set[str]]:
    by_backend: dict[str, set[str]] = {}
    for one in found.verdicts:
        if one.metric == "latency":
            by_backend.setdefault(one.shown.backend, set()).add(one.verdict)
    return by_backend


def rewritten(run: Path, change: Any) -> Path:
    """Every row changed, or left out where `change` gives None."""
    write_rows(run, [row for one in read_rows(run) if (row := change(one)) is not None])
    return run


def test_environments_of_two_runs_are_compared_by_case(tmp_path: Path) -> None:
    base, new = (two_environments(tmp_path / name, {"naive": 2.0}) for name in "ab")
    found = compare_runs(base, new, None, pythons=("new", "new"))
    assert not found.rules.same_run
    assert len(found.latencies) == 6
    with pytest.raises(BadInput, match="no environment 'never' in this run; there are: old, new"):
        compare_runs(base, new, None, pythons=("old", "never"))


def test_a_case_that_fails_in_one_environment_is_broken_there_and_a_missing_one_is_undecided(
    tmp_path: Path,
) -> None:
    run = two_environments(tmp_path, {})
    gone = {"status": "crashed", "reason": "SIGSEGV", "block_ms": None, "peak_bytes": None}

    def change(one: dict[str, Any]) -> dict[str, Any] | None:
        if one["backend"] == "sdpa" and one["case"].endswith("-new"):
            return {**one, **gone} if one["seq_len"] == 256 else None
        return one

    (found,) = comparisons(rewritten(run, change))
    statuses = {
        (one.shown.backend, one.shown.problem["seq_len"]): one.verdict
        for one in found.verdicts
        if one.metric == "status"
    }
    assert statuses == {("sdpa", 256): "broken", ("sdpa", 512): "not decided"}


def test_a_run_of_one_environment_has_nothing_to_compare(tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(128, 256))
    assert comparisons(run) == []
    rows = rows_of([read_run(run)])
    assert list(by_environment(rows)) == [None]
    assert by_environment([]) == {None: ()}
    with pytest.raises(BadInput, match="in this run; it was measured in one, without --python"):
        compare_runs(run, run, None, pythons=("old", "new"))


def test_impossible_samples_do_not_affect_the_other_cases(tmp_path: Path) -> None:
    run = rewritten(
        two_environments(tmp_path, {}),
        lambda one: {**one, "block_ms": [[[1e12]]]} if one["backend"] == "naive" else one,
    )
    (found,) = comparisons(run)
    assert verdicts(found) == {"fused": {"same"}, "sdpa": {"same"}}
