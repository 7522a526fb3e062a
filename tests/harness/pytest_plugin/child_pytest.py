"""pytest in a process of its own, as a user runs it in a folder with a scenario."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.conftest import environment, ran
from tests.made_runs import read_rows

PLUGIN = "attnbench.harness.pytest_plugin"
# of the session that runs this test; under xdist it would switch benchmarks off in the child
OURS = re.compile(r"PYTEST_|COV_")
TINY = """\
name: tiny
question: Which is faster on something tiny?
backends: [fused, sdpa]
baseline: fused
grid: {seq_len: [16, 32], d_model: 32, heads: 2}
device: cpu
plan: {processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}
"""
"""Two groups of two cases."""


def loaded() -> list[str]:
    """The flags that load the plugin, where no installed package does."""
    installed = any(one.name == "attnbench" for one in entry_points(group="pytest11"))
    return [] if installed else ["-p", PLUGIN]


def command(*arguments: object, plugin: bool = True) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *(loaded() if plugin else []),
        *map(str, arguments),
    ]


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        name: value
        for name, value in environment(dict(extra or {})).items()
        if not OURS.match(name)
    }


def child(
    folder: Path, *arguments: object, env: Mapping[str, str] | None = None, plugin: bool = True
) -> subprocess.CompletedProcess[str]:
    """`pytest ARGUMENTS...` in a folder, which becomes its root folder; wide enough that no reason
    is cut off.
    """
    (folder / "pytest.ini").touch()
    surroundings = child_environment({"COLUMNS": "300", **(env or {})})
    return ran(command(*arguments, plugin=plugin), cwd=folder, env=surroundings)


def sessions(
    folder: Path, *argument_lists: Sequence[object]
) -> list[subprocess.CompletedProcess[str]]:
    """Several sessions one after the other in one process, which is quicker; for those that only
    collect.
    """
    (folder / "pytest.ini").touch()
    code = """if True:
        import contextlib, io, json, pytest, sys
        answers = []
        for arguments in json.loads(sys.argv[1]):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                with contextlib.redirect_stderr(io.StringIO()) as err:
                    status = pytest.main(arguments)
            answers.append([int(status), out.getvalue(), err.getvalue()])
        print(json.dumps(answers))
    """
    flags = ["-p", "no:cacheprovider", *loaded()]
    given = json.dumps([[*flags, *map(str, arguments)] for arguments in argument_lists])
    env = child_environment({"COLUMNS": "300"})
    done = ran([sys.executable, "-c", code, given], cwd=folder, env=env, check=True)
    answers = json.loads(done.stdout)
    return [
        subprocess.CompletedProcess([*map(str, arguments)], *answer)
        for arguments, answer in zip(argument_lists, answers, strict=True)
    ]


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """pytest without waiting for its end."""
    (folder / "pytest.ini").touch()
    env = child_environment({"COLUMNS": "300"})
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def scenario(folder: Path, text: str = TINY, name: str = "tiny.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def runs(folder: Path) -> list[Path]:
    """Run folders, oldest first."""
    return sorted(folder.glob("results/2*"))


def rows(run: Path) -> dict[str, dict[str, Any]]:
    """By case; every planned case has exactly one."""
    found = read_rows(run)
    planned = [case["case"] for case in json.loads((run / "run.json").read_text())["cases"]]
    assert sorted(row["case"] for row in found) == sorted(planned)
    return {row["case"]: row for row in found}


def collected(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Node ids from --collect-only -q."""
    return [
        line for line in done.stdout.splitlines() if "::" in line and not line.startswith("ERROR")
    ]
