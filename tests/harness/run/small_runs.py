"""Small runs as a user starts them, their rows, and their processes."""

import json
import subprocess
from collections import Counter
from pathlib import Path

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
