"""Interpreters by name: what is none is refused before anything starts, in one line that says what
was wanted.
"""

import json
import sys
from pathlib import Path

import pytest

from attnbench import __version__
from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.process.fingerprint import fingerprint
from attnbench.harness.process.interpreter import check_interpreters, read_interpreters
from attnbench.harness.rows.run_files import SCHEMA
from tests.conftest import environment, ran


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user with PYTHONPATH: interpreters that are asked find this checkout."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["VENV/bin/python"], "'VENV/bin/python': has no name; wanted NAME=PATH, such as --python"),
        (["old="], "has no name"),
        (["=python"], "not a name; wanted up to 32 lowercase letters, digits, ., _ and -"),
        (["Old=python", "new=python"], "not a name"),
        (["-x=python", "new=python"], "not a name"),
        (["a b=python", "new=python"], "not a name"),
        ([f"{'a' * 33}=python", "new=python"], "not a name"),
        (["old=python"], "one interpreter; wanted two or more"),
        (["old=python", "old=other"], "old: given twice"),
    ],
)
def test_what_has_no_good_name_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        read_interpreters(texts)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def asked(path: Path | str) -> None:
    check_interpreters(read_interpreters([f"old={sys.executable}", f"new={path}"]))


@pytest.mark.long
def test_the_same_attnbench_is_welcome_and_whatever_its_start_up_prints_is_passed_over(
    tmp_path: Path,
) -> None:
    asked(sys.executable)
    chatty = tmp_path / "python"
    chatty.write_text(
        f'#!/bin/sh\necho \'{{"welcome": "to this site"}}\'\nexec {sys.executable} "$@"\n'
    )
    chatty.chmod(0o755)
    asked(chatty)


def program(folder: Path, line: str) -> Path:
    """Something that runs and is no Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exit 0", "attnbench printed nothing there (exit code 0)"),
        ("echo 3", "attnbench printed nothing there (exit code 0)"),
        ("echo '{}'", "attnbench printed nothing there (exit code 0)"),
        (
            "printf 'first\\nlast \\033[31m words\\n' >&2; exit 1",
            "cannot import attnbench (last \\x1b[31m words)",
        ),
    ],
)
def test_what_is_no_python_is_refused_in_an_inert_line(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(EnvironmentUnmet) as refusal:
        asked(program(tmp_path, line))
    assert said in str(refusal.value)
    assert f"wanted attnbench {__version__} as this one is" in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"attnbench": "9.9"}, "has attnbench '9.9'"),
        ({"schema": SCHEMA + 1}, f"with rows of format {SCHEMA + 1}, not {SCHEMA}"),
        ({"code": "0" * 12}, f"has attnbench {__version__} with different code"),
    ],
)
def test_another_attnbench_is_refused_with_the_command_that_installs_this_one(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = program(tmp_path, f"echo '{json.dumps(fingerprint() | change)}'")
    with pytest.raises(EnvironmentUnmet) as refusal:
        asked(path)
    assert said in str(refusal.value)
    assert f"{path} -m pip install " in str(refusal.value)


@pytest.mark.long
def test_the_introduction_needs_no_package_and_tells_of_every_file_that_measures(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-S", "-m", "attnbench.harness.process.fingerprint"]  # no packages
    done = ran(command, check=True)
    assert json.loads(done.stdout) == fingerprint()
