"""reports/exports/github_benchmark.py: github-action-benchmark can read it.

For `tool: customSmallerIsBetter` it takes name, value, unit, range and extra of each entry of a
JSON array, compares entries of equal names over commits, and takes a range for a number only if it
is written as "± NUMBER" in the unit of the value. An empty array is an error there.
"""

import json
from pathlib import Path

import pytest

from attnbench.reports.exports import NotExportable, export
from tests.made_runs import many_problems, quickstart


def entries(*runs: Path) -> list[dict]:
    found = json.loads(export(list(runs), "github-benchmark").content)
    assert isinstance(found, list)
    return found


def test_names_are_unique_and_the_same_in_the_next_run(tmp_path: Path) -> None:
    first, second = quickstart(tmp_path / "a"), quickstart(tmp_path / "b")
    names = [one["name"] for one in entries(first)]
    assert len(names) == len(set(names))
    assert names == [one["name"] for one in entries(second)]
    with pytest.raises(NotExportable, match="same names"):
        entries(first, second)
    both = [one["name"] for one in entries(first, many_problems(tmp_path))]
    assert len(both) == len(set(both)) > len(names)
