"""reports/exports/github_benchmark.py: github-action-benchmark can read it.

For `tool: customSmallerIsBetter` it takes name, value, unit, range and extra of each entry of a
JSON array, compares entries of equal names over commits, and takes a range for a number only if it
is written as "± NUMBER" in the unit of the value. An empty array is an error there.
"""

import json
import re
from pathlib import Path

import pytest

from attnbench.reports.data.load import load
from attnbench.reports.exports import NotExportable, export
from tests.made_runs import fake_run, many_problems, quickstart


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


def test_values_and_ranges_are_those_of_the_table(tmp_path: Path) -> None:
    run = fake_run(tmp_path, 1)
    by_name = {one["name"]: one for one in entries(run)}
    for known in load(run).to_dict("records"):
        name = f"seed1: {known['case']}"
        latency, peak = by_name[f"{name} latency"], by_name[f"{name} peak"]
        assert (latency["value"], latency["unit"]) == (pytest.approx(known["latency_ms"]), "ms")
        half_width_ms = (known["latency_high_ms"] - known["latency_low_ms"]) / 2
        found = re.fullmatch(r"(?:\+-|±)\s*(\d.*)", latency["range"])
        assert found is not None
        assert float(found[1]) == pytest.approx(half_width_ms, rel=1e-4)
        assert (peak["value"], peak["unit"]) == (known["peak_bytes"], "bytes")
