"""Ctrl-C while the command is still importing: one line, exit code 130, no traceback."""

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment, ran

STOPPED = "stopped by SIGINT\n"
HOOK = '''
"""Sends SIGINT when a module is imported."""
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED"]:
            sys.meta_path.remove(self)
            {action}

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):  # a signal is noticed between two steps of the interpreter
        pass

def converted():
    try:
        interrupt()
    except KeyboardInterrupt:
        raise ImportError("numpy could not be imported") from None

class Unraisable:
    def __del__(self):
        interrupt()

sys.meta_path.insert(0, Finder())
'''


def interrupted(
    folder: Path, module: str, action: str, *args: str, ignored: bool = False
) -> subprocess.CompletedProcess[str]:
    """`attnbench ARGS...` as its console script runs it."""
    (folder / "hook.py").write_text(HOOK.replace("{action}", action))
    code = "import hook; from attnbench.__main__ import main; main()"
    path = f"{folder}:{ROOT / '.package'}"
    return ran(
        [sys.executable, "-c", code, *args],
        cwd=folder,
        env=environment({"PYTHONPATH": path, "INTERRUPTED": module}),
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "action", "command"),
    [
        ("attnbench.harness.verbs.app", "interrupt()", "list scenarios"),
        ("typer", "converted()", "list scenarios"),
        ("pydantic", "Unraisable()", "list scenarios"),
        ("attnbench.harness.run.start", "Unraisable()", "run quickstart"),
        ("humanize", "converted()", "show latest"),
    ],
)
def test_an_interrupted_import_is_one_line(
    tmp_path: Path, module: str, action: str, command: str
) -> None:
    done = interrupted(tmp_path, module, action, *command.split())
    assert (done.returncode, done.stderr, done.stdout) == (130, STOPPED, "")


def test_a_background_job_that_ignores_it_goes_on(tmp_path: Path) -> None:
    done = interrupted(tmp_path, "typer", "interrupt()", "list", "scenarios", ignored=True)
    assert done.returncode == 0
    assert "quickstart" in done.stdout


def test_the_installed_command_starts_where_this_test_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"attnbench": "attnbench.__main__:main"}
