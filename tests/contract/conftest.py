"""What the contract tests share: `attnbench` as a user starts it, a scenario file, what a run left.

These tests know only what a user sees: scenario files, commands, exit codes, stderr, rows.jsonl and
run.json, pages, the Python names and pytest. They start real processes and import nothing of
harness, impls or reports.
"""

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import FAKE_BACKENDS, command_line, environment, ran, wait_for

HERE = Path(__file__).parent
QUICK = "plan: {like: quick, processes: 1, min_blocks: 3, max_blocks: 4, budget_s: 0.05}"
Attnbench = Callable[..., subprocess.CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.contract)
            item.add_marker(pytest.mark.long)  # all start processes


@pytest.fixture
def attnbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attnbench:
    """Run `attnbench ARGS...` in an empty folder, as a user without settings of ours; `backends`
    adds the folder of backends that misbehave.
    """
    monkeypatch.chdir(tmp_path)
    return run_attnbench


def run_attnbench(
    *args: object, env: dict[str, str] | None = None, backends: bool = False, **how: Any
) -> subprocess.CompletedProcess[str]:
    return ran(command_line(*args), env=users_environment(env, backends=backends), **how)


def users_environment(
    extra: dict[str, str] | None = None, *, backends: bool = False
) -> dict[str, str]:
    ours = {"ATTNBENCH_BACKENDS": str(FAKE_BACKENDS)} if backends else {}
    full = environment(ours | (extra or {}))
    if not backends and "ATTNBENCH_BACKENDS" not in (extra or {}):
        del full["ATTNBENCH_BACKENDS"]
    return full


def started(*args: object, env: dict[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
    """The same, still running, in a process group of its own."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    backends = settings.pop("backends", False)
    return subprocess.Popen(
        command_line(*args),
        env=users_environment(env, backends=backends),
        start_new_session=True,
        **settings,
    )


def rows(run: Path) -> list[dict[str, Any]]:
    """The rows of a run folder, as they stand in rows.jsonl."""
    return [json.loads(line) for line in (run / "rows.jsonl").read_text().splitlines()]


def last_rows(run: Path) -> dict[str, dict[str, Any]]:
    """The rows that count, by case: every planned case has one, and no attempt is there twice."""
    found = rows(run)
    attempts = [(row["case"], row["attempt"]) for row in found]
    assert len(attempts) == len(set(attempts))
    planned = [one["case"] for one in json.loads((run / "run.json").read_text())["cases"]]
    assert sorted(planned) == sorted({row["case"] for row in found})
    return {row["case"]: row for row in found}


def by_backend(run: Path) -> dict[str, dict[str, Any]]:
    """The same of a run with one problem."""
    found = {row["backend"]: row for row in last_rows(run).values()}
    assert len(found) == len(last_rows(run))
    return found


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def wait_until_gone(processes: list[psutil.Process]) -> None:
    wait_for(lambda: not any(map(lives, processes)), timeout_s=60)


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def only_run(runs: Path) -> Path:
    """The one run folder under `runs`."""
    (found,) = {path.parent.resolve() for path in runs.glob("*/run.json")}  # "latest" is a link
    return found


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of eight small cases: naive and sdpa, N of 64 and 128, one head and four."""
    folder = tmp_path_factory.mktemp("finished")
    scenario = folder / "small.yaml"
    scenario.write_text(
        "name: small\n"
        "question: How long does attention take?\n"
        "backends: [naive, sdpa]\n"
        "device: cpu\n"
        "grid: {batch: 1, seq_len: [64, 128], d_model: 64, heads: [1, 4]}\n"
        f"{QUICK}\n"
    )
    ran(
        command_line("run", scenario, "--runs", folder / "runs"),
        env=users_environment(),
        cwd=folder,
        check=True,
    )
    return only_run(folder / "runs")
