"""Every format of the folder: writes the same bytes again, and accepts odd runs."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from attnbench.reports.exports import Exported, NotExportable, export, load, names
from tests.made_runs import case, many_problems, problem, quickstart, row, write_run
from tests.reports.subjects.test_wall_rows import only_walls

WHOLE_RUNS = ("chrome-trace", "csv", "json", "md", "parquet")
SPEEDS_ONLY = ("github-benchmark", "pytest-benchmark")
NEEDS = {"parquet": "pyarrow"}


def with_its_package(name: str):
    """The format as a parameter, skipped where a package that it alone needs is missing."""
    package = NEEDS.get(name, "")
    missing = pytest.mark.skipif(
        bool(package) and not find_spec(package), reason=f"needs {package}"
    )
    return pytest.param(name, marks=missing)


pytestmark = pytest.mark.parametrize("name", [with_its_package(name) for name in names()])


def size(done: Exported) -> int:
    return len(done.content)


def test_it_has_a_meaning(name: str) -> None:
    assert load(name).MEANING


def test_the_same_run_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    assert size(export(run, name)) > 1000
    assert export(run, name) == export(str(run), name)


def test_two_runs_of_different_scenarios_hold_more_than_one(name: str, tmp_path: Path) -> None:
    one, other = quickstart(tmp_path), many_problems(tmp_path)
    assert size(export([one, other], name)) > size(export(one, name))


def test_a_torn_last_line_has_a_note(name: str, tmp_path: Path) -> None:
    run = quickstart(tmp_path)
    with (run / "rows.jsonl").open("a") as file:
        file.write('{"torn')
    assert any("torn off" in note for note in export(run, name).notes)


@pytest.mark.long
def test_a_run_without_any_speed_is_written_or_refused_in_one_line(
    name: str, tmp_path: Path
) -> None:
    planned = case("naive", problem(128))
    failed = write_run(tmp_path, [planned], [row(planned, "oom")])
    for run in (
        failed,
        write_run(tmp_path, [planned], [], name="empty"),
        only_walls(tmp_path / "walls"),
    ):
        try:
            assert export(run, name).content
            assert name not in SPEEDS_ONLY
        except NotExportable as refusal:
            assert name not in WHOLE_RUNS
            assert re.fullmatch(r"no [^\n]+; [^\n]+", str(refusal))  # noqa: PT017
