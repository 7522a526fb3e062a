"""Every format of the folder: writes the same bytes again, and accepts odd runs."""

import re
from pathlib import Path

import pytest

from attnbench.reports.exports import NotExportable, PackageMissing, export, load, names
from tests.made_runs import case, problem, quickstart, row, write_run
from tests.reports.subjects.test_wall_rows import only_walls

WHOLE_RUNS = ("csv", "json", "json-rows", "parquet")
SPEEDS_ONLY = ("github-benchmark", "pytest-benchmark")


@pytest.fixture(params=names())
def name(request: pytest.FixtureRequest) -> str:
    """Each format, but for one whose package is missing."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return str(request.param)


def test_the_same_run_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(512, 8192))
    assert len(export(run, name).content) > 1000
    assert export(run, name) == export(str(run), name)


@pytest.mark.parametrize(
    ("needing", "extra"), [("parquet", "parquet"), ("pytest-benchmark", "pytest")]
)
def test_a_format_whose_package_is_missing_says_how_to_get_it(
    needing: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load(needing), "find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=rf"pip install 'attnbench\[{extra}\]'"):
        export(quickstart(tmp_path), needing)


def test_a_torn_last_line_has_a_note(name: str, tmp_path: Path) -> None:
    run = quickstart(tmp_path, lengths=(512,))
    with (run / "rows.jsonl").open("a") as file:
        file.write('{"torn')
    assert any("incomplete" in note for note in export(run, name).notes)


@pytest.mark.long
def test_a_run_without_any_speed_is_written_or_refused_in_one_line(
    name: str, tmp_path: Path
) -> None:
    planned = case("naive", problem(128))
    failed = write_run(tmp_path, [planned], [row(planned, "oom")])
    empty = write_run(tmp_path, [planned], [], name="empty")
    for run in (failed, empty, only_walls(tmp_path / "walls")):
        try:
            assert export(run, name).content
            assert name not in SPEEDS_ONLY
        except NotExportable as refusal:
            assert name not in WHOLE_RUNS
            assert re.fullmatch(r"no [^\n]+; [^\n]+", str(refusal))  # noqa: PT017
