"""How far runs and suites are, what `latest` is, and how the runs of a suite are named."""

import json
from pathlib import Path

import pytest

from attnbench.harness.files.errors import BadInput
from attnbench.harness.rows.run_files import SUITE
from attnbench.harness.store import names
from attnbench.harness.store.names import find, find_run, find_runs
from attnbench.harness.store.run_store import point_latest
from attnbench.harness.store.suites import newest_finished, newest_started, suite_state
from tests.fakes.stored_runs import case, plan, record

DONE = {"a": "ok", "b": "oom"}
A, B = case(1), case(2)
KERNELS = [{"case": "a"}, {"case": "b"}]  # as older versions planned an audit of kernels


def run(
    root: Path,
    number: int,
    rows: dict[str, str],
    scenario: str = "one",
    *,
    measured: bool = True,
    **meta: object,
) -> Path:
    """A run of the cases a and b, started in the second `number`; `measured`: with bytes."""
    path = root / f"20260101T0000{number:02}Z-{scenario}-{number:08x}"
    path.mkdir(parents=True)
    document = plan([A, B], scenario) | meta
    (path / "run.json").write_text(json.dumps({"schema": 1, "run": path.name, **document}))
    known: dict[str, object] = {"peak_bytes": 64} if measured else {}
    records = [
        record({"a": A, "b": B}[name], status, **(known if status == "ok" else {}))
        for name, status in rows.items()
    ]
    (path / "rows.jsonl").write_text("".join(json.dumps(one.row()) + "\n" for one in records))
    return path


def entry(scenario: str, **known: object) -> dict[str, object]:
    plan = {"scenario": {"name": scenario}, "source": "", "only": [], "within": [], "skip": []}
    return {**plan, "run": None, "ended": None, "reason": "", "statuses": {}, **known}


def suite(root: Path, number: int, *entries: dict[str, object]) -> Path:
    path = root / f"20260101T0000{number:02}Z-suite-{number:08x}"
    path.mkdir()
    document = {"schema": 1, "suite": path.name, "seed": 0, "pythons": [], "entries": entries}
    (path / SUITE).write_text(json.dumps(document))
    return path


def test_latest_is_the_last_finished_measuring_run(tmp_path: Path) -> None:
    assert newest_finished(tmp_path) is None
    first = run(tmp_path, 1, DONE)
    second = run(tmp_path, 2, DONE)
    run(tmp_path, 3, {"a": "ok", "b": "interrupted"})
    unfinished = run(tmp_path, 4, {})
    audit = run(tmp_path, 5, DONE, kernels=KERNELS, cases=[])
    assert newest_finished(tmp_path) == find("latest", tmp_path) == second
    assert newest_started(tmp_path) == unfinished
    assert find("latest", tmp_path, unfinished=True) == unfinished
    point_latest(tmp_path, audit.name)  # as older versions did
    assert newest_finished(tmp_path) == second
    point_latest(tmp_path, first.name)  # it was resumed, and finished after the second
    assert newest_finished(tmp_path) == first


@pytest.mark.parametrize(
    ("rows", "meta", "why"),
    [
        ({}, {}, "an empty run"),
        ({"a": "ok"}, {}, "not finished: 1 of 2"),
        ({"a": "crashed", "b": "oom"}, {}, r"no case is ok \(1 crashed, 1 oom\); wanted a run"),
        (DONE, {"court": True}, "a court"),
        (DONE, {"kernels": KERNELS[:1]}, "an audit of kernels"),
    ],
)
def test_a_baseline_is_a_finished_measuring_run(
    tmp_path: Path, rows: dict[str, str], meta: dict[str, object], why: str
) -> None:
    path = run(tmp_path, 1, rows, **meta)
    with pytest.raises(BadInput, match=f"{path.name}: {why}"):
        names.save("main", path, tmp_path, force=False)
    assert not (tmp_path / names.FOLDER).exists()
    good = run(tmp_path, 2, DONE)
    names.save("main", good, tmp_path, force=False)
    assert find_run("main", tmp_path) == good


def test_a_run_without_times_and_bytes_is_no_baseline(tmp_path: Path) -> None:
    path = run(tmp_path, 1, DONE, measured=False)
    with pytest.raises(
        BadInput, match="no case has a time or bytes, and walls and studies are not"
    ):
        names.save("main", path, tmp_path, force=False)
    assert not (tmp_path / names.FOLDER).exists()


# ---- suites --------------------------------------------------------------------------------------


def test_the_state_of_a_suite_follows_from_its_runs(tmp_path: Path) -> None:
    path = suite(
        tmp_path,
        1,
        entry("one"),
        entry("two", ended="finished"),  # its row was lost since, or never written
        entry("three", ended="refused", reason="no GPU\nlog"),
        entry("four"),
    )
    run(path, 2, DONE, "one", suite_entry=0)
    run(path, 3, {"a": "ok"}, "two", suite_entry=1)
    state = suite_state(path)
    assert [one.ended for one in state.entries] == [
        *("finished", "interrupted", "refused", "not started")
    ]
    assert state.entries[2].refused == "no GPU"
    assert not state.has_ended
    assert newest_finished(tmp_path) == find("latest", tmp_path) == state.runs[0]
    assert find("latest", tmp_path, unfinished=True) == path


def test_one_run_of_a_suite_is_named_by_its_scenario(tmp_path: Path) -> None:
    path = suite(tmp_path, 1, entry("one"), entry("two"), entry("two"))
    runs = [
        run(path, number, DONE, name, suite_entry=number)
        for number, name in enumerate(["one", "two", "two"])
    ]
    point_latest(tmp_path, path.name)
    for name in (str(path), path.name, "latest"):
        assert find_runs(name, tmp_path) == runs
        assert find_run(f"{name}/one", tmp_path) == runs[0]
        assert find_run(f"{name}/{runs[1].name}", tmp_path) == runs[1]
        with pytest.raises(BadInput, match=f"a suite of 3 runs; wanted one of them: {name}/2026"):
            find_run(name, tmp_path)
        with pytest.raises(BadInput, match=r"several runs of this scenario; there are: .*-two-"):
            find_run(f"{name}/two", tmp_path)
        with pytest.raises(BadInput, match="no such run in this suite; there are: one, two, two"):
            find_run(f"{name}/absent", tmp_path)
    with pytest.raises(BadInput, match="no such run"):
        find_run("a/" * 500, tmp_path)
