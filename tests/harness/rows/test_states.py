"""How far runs are, and what `latest` is."""

import json
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.rows import names
from attnbench.harness.rows.names import find
from attnbench.harness.rows.run_store import point_latest, runs
from attnbench.harness.rows.states import newest_finished, newest_started
from tests.fakes.stored_runs import case, plan, record

DONE = {"a": "ok", "b": "oom"}
A, B = case(1), case(2)


def run(
    root: Path, number: int, rows: dict[str, str], scenario: str = "one", *, measured: bool = True
) -> Path:
    """A run of the cases a and b, started in the second `number`; `measured`: with bytes."""
    path = root / f"20260101T0000{number:02}Z-{scenario}-{number:08x}"
    path.mkdir(parents=True)
    document = plan([A, B], scenario)
    (path / "run.json").write_text(json.dumps({"schema": 1, "run": path.name, **document}))
    known: dict[str, object] = {"peak_bytes": 64} if measured else {}
    records = [
        record({"a": A, "b": B}[name], status, **(known if status == "ok" else {}))
        for name, status in rows.items()
    ]
    (path / "rows.jsonl").write_bytes(b"".join(one.line for one in records))
    return path


def test_latest_is_the_last_finished_run(tmp_path: Path) -> None:
    assert newest_finished(tmp_path) is None
    first = run(tmp_path, 1, DONE)
    second = run(tmp_path, 2, DONE)
    run(tmp_path, 3, {"a": "ok", "b": "interrupted"})
    unfinished = run(tmp_path, 4, {})
    assert newest_finished(tmp_path) == find("latest", tmp_path) == second
    assert find(str(first), tmp_path) == find(first.name, tmp_path) == first
    assert find("one", tmp_path) == unfinished
    with pytest.raises(BadInput, match="a folder without"):
        find(str(tmp_path), tmp_path)
    assert newest_started(tmp_path) == unfinished
    assert find("latest", tmp_path, unfinished=True) == unfinished
    point_latest(tmp_path, first.name)  # it was resumed, and finished after the second
    assert newest_finished(tmp_path) == first


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ({}, "an empty run"),
        ({"a": "ok"}, "not finished: 1 of 2"),
        ({"a": "crashed", "b": "oom"}, r"no case is ok \(1 crashed, 1 oom\); wanted at least one"),
    ],
)
def test_a_baseline_is_a_finished_run(tmp_path: Path, rows: dict[str, str], why: str) -> None:
    path = run(tmp_path, 1, rows)
    with pytest.raises(BadInput, match=f"{path.name}: {why}"):
        names.save("main", path, tmp_path, force=False)
    assert not (tmp_path / names.FOLDER).exists()
    good = run(tmp_path, 2, DONE)
    names.save("main", good, tmp_path, force=False)
    assert find("main", tmp_path) == good


def test_a_run_without_times_and_bytes_is_no_baseline(tmp_path: Path) -> None:
    path = run(tmp_path, 1, DONE, measured=False)
    with pytest.raises(BadInput, match="no case has a time or bytes; wanted a run"):
        names.save("main", path, tmp_path, force=False)
    assert not (tmp_path / names.FOLDER).exists()


def test_a_suite_of_an_earlier_version_is_no_run_and_its_runs_are_read_by_path(
    tmp_path: Path,
) -> None:
    suite = tmp_path / "20260101T000001Z-suite-00000001"
    inside = run(suite, 2, DONE)
    (suite / "suite.json").write_text("{}")
    own = run(tmp_path, 1, DONE)
    assert runs(tmp_path) == [own]
    assert find("latest", tmp_path) == own
    assert find(f"{suite.name}/{inside.name}", tmp_path) == inside
    with pytest.raises(BadInput, match="no such run"):
        find(suite.name, tmp_path)
