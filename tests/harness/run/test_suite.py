"""A suite goes on where it was stopped, whatever stopped it, and measures nothing twice."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from attnbench.harness.files.errors import EnvironmentUnmet, Stopped
from attnbench.harness.rows.run_files import read_suite
from attnbench.harness.run import suite as measured
from attnbench.harness.run.listener import Listener
from attnbench.harness.run.run_rows import RunResult
from attnbench.harness.run.start import RunOptions
from attnbench.harness.run.suite import Suite, SuiteEntry
from attnbench.harness.scenario import from_mapping
from attnbench.harness.scenario.selection import Selection
from attnbench.harness.store.run_store import Store
from attnbench.harness.store.suites import newest_finished, run_state, runs_by_entry, suite_state
from tests.fakes.stored_runs import case, plan, record

OPTIONS = RunOptions(command=["test"], listener=Listener())


class Killed(BaseException):
    """Stands for SIGKILL: nothing that the suite would do afterwards happens."""


class FakeRuns:
    """Stands for run/start.py: runs of two cases, which end as `script` says for each scenario."""

    def __init__(self, script: dict[str, list[str]]) -> None:
        self.script = script
        self.calls: list[str] = []

    def start(
        self, scenario: Any, root: Path, seed: int, selection: Any, options: Any
    ) -> RunResult:
        self.calls.append(f"start {scenario.name}")
        step = self.script[scenario.name].pop(0)
        if step == "signal first":
            raise Stopped(15)
        if step == "killed first":
            raise Killed
        meta = plan([case(0), case(1)], scenario.name, suite_entry=options.suite_entry)
        store = Store.create(root, scenario.name, meta)
        if step == "killed at once":
            store.close()
            raise Killed
        return self._end(store, step)

    def resume(
        self,
        path: Path,
        options: Any,
        interpreters: Any,
        *,
        attachments: Any,
        retry_failed: bool,
        force: bool,
    ) -> RunResult:
        name = run_state(path).scenario
        self.calls.append(f"resume {name}{' again' if retry_failed else ''}")
        return self._end(Store.reopen(path), self.script[name].pop(0))

    def _end(self, store: Store, step: str) -> RunResult:
        done = {"killed": ["ok"], "signal": ["ok", "interrupted"], "fails": ["ok", "crashed"]}
        statuses = done.get(step, ["ok", "ok"])
        store.append(record(case(number), status) for number, status in enumerate(statuses))
        store.close()
        if step == "killed":
            raise Killed
        signal = 2 if step == "signal" else None
        return RunResult(path=store.path, statuses=Counter(statuses), signal=signal)


@pytest.fixture
def fake_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeRuns]:
    def install(**script: list[str]) -> FakeRuns:
        fake = FakeRuns(script)
        monkeypatch.setattr(measured, "start_run", fake.start)
        monkeypatch.setattr(measured, "resume_run", fake.resume)
        return fake

    return install


def entry(name: str, **selection: Any) -> SuiteEntry:
    grid = {"seq_len": 64, "d_model": 32, "heads": 2}
    data = {"name": name, "question": f"What is {name}?", "backends": ["fused"], "grid": grid}
    return SuiteEntry(scenario=from_mapping(data, "test"), selection=Selection(**selection))


def new_suite(root: Path, *names: str) -> Suite:
    return Suite.create(root, "Abend suite/1", [entry(name) for name in names], 7, ["attnbench"])


def complete(suite: Suite) -> list[Any]:
    """Measure what is pending, as the command line does; a signal ends it."""
    ends = []
    try:
        for number in suite.pending():
            ends.append(suite.measure(number, OPTIONS))
            if ends[-1].exit_code > 128:
                break
    finally:
        suite.close()
    return ends


def test_a_suite_is_a_folder_of_runs_with_a_plan(tmp_path: Path, fake_runs: Any) -> None:
    fake = fake_runs(one=["done"], two=["fails"])
    ends = complete(suite := new_suite(tmp_path, "one", "two"))
    assert fake.calls == ["start one", "start two"]
    assert [end.exit_code for end in ends] == [0, 1]
    assert suite.path.name.split("-")[1] == "abend_suite_1"
    assert [run.parent for run in runs_by_entry(suite.path).values()] == [suite.path] * 2
    assert not list(suite.path.glob(".*tmp"))
    document = read_suite(suite.path)
    assert [one["ended"] for one in document["entries"]] == ["finished", "finished"]
    assert [one["statuses"] for one in document["entries"]] == [{"ok": 2}, {"ok": 1, "crashed": 1}]
    assert newest_finished(tmp_path) == suite.path.resolve()
    assert (tmp_path / "latest").readlink() == Path(suite.path.name)


STOPS = ["killed first", "killed at once", "killed", "signal first", "signal"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("at", ["one", "two", "three"])
def test_a_stopped_suite_is_completed_and_finished_runs_are_left(
    tmp_path: Path, fake_runs: Any, stop: str, at: str
) -> None:
    names = ["one", "two", "three"]
    fake = fake_runs(**{name: [stop, "done"] if name == at else ["done"] for name in names})
    suite = new_suite(tmp_path, *names)
    path = suite.path
    plan = (path / "suite.json").read_bytes()
    with suppress(Killed):
        complete(suite)
    if not path.exists():  # nothing had started, and the suite could still clean up
        assert at == "one"
        assert "first" in stop
        return
    before = {run: (run / "rows.jsonl").read_bytes() for run in runs_by_entry(path).values()}
    if stop.startswith("killed"):  # also if suite.json was never written again
        (path / "suite.json").write_bytes(plan)
    assert not suite_state(path).has_ended
    fake.calls.clear()
    ends = complete(Suite(path))
    assert [end.exit_code for end in ends] == [0] * len(ends)
    left = names[names.index(at) :]
    word = "start" if "first" in stop else "resume"
    assert fake.calls == [f"{word} {at}", *(f"start {name}" for name in left[1:])]
    assert suite_state(path).has_ended
    assert [one.scenario for one in suite_state(path).entries] == names
    for run, rows in before.items():
        assert (run / "rows.jsonl").read_bytes().startswith(rows)
    assert complete(Suite(path)) == []


def test_a_suite_is_removed_in_one_step_and_nothing_of_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = new_suite(tmp_path, "one")
    (suite.path / "mine").write_text("kept")
    suite.close()
    assert {one.name for one in suite.path.iterdir()} == {"mine", "suite.json", ".lock"}
    (suite.path / "mine").unlink()
    monkeypatch.setattr(
        "attnbench.harness.files.safe_files._remove", lambda path: None
    )  # killed before
    Suite(suite.path).close()
    assert not suite.path.exists()


def test_a_suite_has_one_writer(tmp_path: Path, fake_runs: Any) -> None:
    fake_runs()
    suite = new_suite(tmp_path, "one")
    with pytest.raises(EnvironmentUnmet, match="written by another process"):
        Suite(suite.path)
    suite.close()
