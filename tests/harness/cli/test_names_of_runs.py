"""Names of runs: baselines, the name of a grid that options give, and where there are no runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from attnbench.harness.store.names import find
from tests.made_runs import fake_run, quickstart, read_rows

Here = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fake_run(tmp_path / "results", 1)


def with_failures(run: Path, failed: Callable[[int], bool]) -> tuple[Path, int]:
    """A copy of the run, in which cases crashed, and how many cases it has."""
    copy = run.parent / "20261121T110000Z-failed-00000003"
    shutil.copytree(run, copy)
    rows = read_rows(run)
    crashed = {"status": "crashed", "reason": "died of signal 11", "block_ms": None}
    (copy / "rows.jsonl").write_text(
        "".join(
            json.dumps(one | crashed if failed(place) else one) + "\n"
            for place, one in enumerate(rows)
        )
    )
    return copy, len(rows)


def test_a_run_in_which_nothing_is_ok_is_no_baseline(here: Here, run: Path) -> None:
    copy, count = with_failures(run, lambda place: True)
    done = here("baseline", "save", "main", copy)
    assert done.returncode == 2
    assert done.stderr == (
        f"{copy.name}: no case is ok ({count} crashed); wanted a run with at least one, to compare"
        f" with; see the reasons with `attnbench show {copy}`\n"
    )
    assert not (run.parent / "baselines").exists()


def test_runs_of_earlier_versions_are_found_by_the_name_they_had(tmp_path: Path) -> None:
    run = quickstart(tmp_path, (128,))
    old = run.rename(run.with_name(run.name.replace("quickstart", "flags")))
    assert find("flags", tmp_path) == old


def test_an_export_has_the_format_that_its_file_ends_in(here: Here, run: Path) -> None:
    for name in ("a.json", "a.csv", "a.txt"):
        assert here("export", run, "-o", name).returncode == 0
    json.loads(Path("a.json").read_text())
    assert Path("a.csv").read_bytes() == Path("a.txt").read_bytes()
    done = here("export", run, "-o", "a.xlsx")
    assert "note: .xlsx names no format, so it is csv; --format takes " in done.stderr
    assert Path("a.xlsx").read_bytes() == Path("a.csv").read_bytes()
    assert here("export", run, "-o", "b.json", "--format", "csv").returncode == 0
    assert Path("b.json").read_bytes() == Path("a.csv").read_bytes()
