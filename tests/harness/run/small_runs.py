"""Small runs as a user starts them, their rows, and their processes."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.conftest import command_line, environment, ran
from tests.made_runs import read_rows

QUICK = (
    "--set",
    "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}",
    "--device",
    "cpu",
)


def axes(backends: str, **others: object) -> list[str]:
    """Flags for a small grid."""
    given = {"batch": 1, "seq_len": "64", "d_model": 32, "heads": 2, **others}
    return [
        "--backends",
        backends,
        *(
            part
            for name, value in given.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ),
    ]


def run_in(
    folder: Path, *args: object, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`attnbench run ARGS...` there, for fixtures that several tests share."""
    return ran(command_line("run", *args), cwd=folder, env=environment(env))


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    """Last rows by backend; the run folder is the only line on stdout."""
    (line,) = done.stdout.splitlines()
    return by_backend(Path(line))


def by_backend(run: Path) -> dict[str, dict]:
    rows = read_rows(run)
    planned = [case["case"] for case in json.loads((run / "run.json").read_text())["cases"]]
    assert sorted(planned) == sorted({row["case"] for row in rows}), "every planned case has a row"
    assert max(Counter((row["case"], row["attempt"]) for row in rows).values()) == 1, (
        "no row is doubled"
    )
    return {row["backend"]: row for row in rows}


def start_and_wait_for_rows(
    tmp_path: Path, args: Sequence[str], rows: int, env: Mapping[str, str] = {}
) -> tuple[subprocess.Popen[bytes], Path]:
    """What it says goes to `tmp_path`/stderr."""
    with (tmp_path / "stderr").open("wb") as said:
        process = subprocess.Popen(
            command_line("run", *args),
            cwd=tmp_path,
            env=environment(env),
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for file in tmp_path.glob("results/2*/rows.jsonl"):
            if file.read_bytes().count(b"\n") >= rows:
                return process, file.parent
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError("no rows came")


def worker_pids(parent: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(parent).children(recursive=True)]
    return []


def is_alive(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if is_alive(pid)]
