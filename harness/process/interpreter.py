"""The interpreters that a run measures in (`--python NAME=PATH`), checked beforehand."""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ..files.errors import BadInput, EnvironmentUnmet, shown
from ..files.printable import visible
from .command import run_command
from .fingerprint import fingerprint

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
SAFE_PATH = ("-P",)
"""Python imports nothing from the current folder then, where a numpy.py of the user's may be."""
EXAMPLE = "such as --python old=VENV/bin/python --python new=OTHER/bin/python"
ANSWER_S = 60.0  # an interpreter on a cold network disk
LAST_LINE_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """`path` is absolute, with its links: a venv's python is a link to one without the venv."""

    name: str
    path: Path

    @property
    def flag(self) -> str:
        """As the user gave it."""
        return f"--python {self.name}={self.path}"

    def run_json(self, environment: dict[str, Any]) -> dict[str, Any]:
        """As run.json has it; `environment` comes from a worker that runs in it."""
        return {"name": self.name, "path": str(self.path), "environment": environment}


def read_interpreters(texts: Sequence[str]) -> tuple[Interpreter, ...]:
    """From `NAME=PATH`, two or more. Raises BadInput."""
    found: dict[str, Interpreter] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise BadInput(f"--python {shown(text)}: has no name; wanted NAME=PATH, {EXAMPLE}")
        if not NAME.fullmatch(name):
            wanted = "up to 32 lowercase letters, digits, ., _ and -"
            raise BadInput(f"--python {shown(text)}: not a name; wanted {wanted}, {EXAMPLE}")
        if name in found:
            raise BadInput(f"--python: {name}: given twice; wanted different names, {EXAMPLE}")
        found[name] = Interpreter(name=name, path=Path(path).expanduser().absolute())
    if len(found) == 1:
        raise BadInput(f"--python: one interpreter; wanted two or more to compare, {EXAMPLE}")
    return tuple(found.values())


def given_again(
    run: Path, recorded: object, given: Sequence[Interpreter]
) -> tuple[Interpreter, ...]:
    """The interpreters that the user gives for a run to resume, in the order of its environments.

    `recorded`: the environments as its file has them. Of these only the names count: whoever wrote
    the file must not choose what is executed. Raises BadInput.
    """
    try:
        names = [one["name"] for one in recorded]  # type: ignore[attr-defined]
        if not all(NAME.fullmatch(name) for name in names):
            raise ValueError("not a name")
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"{run}: its environments have no names; it cannot be resumed") from None
    by_name = {one.name: one for one in given}
    if by_name.keys() != set(names):
        found = ", ".join(by_name) or "none"
        if not names:
            raise BadInput(f"--python: {run} was measured without; leave out --python")
        flags = " ".join(f"--python {name}=PATH" for name in names)
        raise BadInput(
            f"--resume: {run} was measured in {', '.join(names)}, given {found}; name their"
            f" interpreters again, because none is taken from a file: {flags}"
        )
    return tuple(by_name[name] for name in names)


def check_interpreters(interpreters: Sequence[Interpreter]) -> None:
    """Check that each runs and has the same attnbench. Raises BadInput and EnvironmentUnmet."""
    ours = fingerprint()
    for one in interpreters:
        _refuse_missing_file(one)
        found = difference(_fingerprint_of(one), ours)
        if found:
            raise EnvironmentUnmet(
                f"{one.flag}: {found}; wanted attnbench {ours['attnbench']} as this one is, so that"
                f" the same code measures everywhere: {install_command(one.path)}"
            )


def install_command(python: Path) -> str:
    """The command that installs our attnbench there: from our checkout, or by version."""
    checkout = Path(__file__).resolve().parents[2]
    is_checkout = (checkout / "pyproject.toml").is_file()
    what = str(checkout) if is_checkout else f"attnbench=={__version__}"
    return shlex.join([str(python), "-m", "pip", "install", what])


def _refuse_missing_file(one: Interpreter) -> None:
    example = "an interpreter, such as VENV/bin/python"
    if one.path.is_dir():
        inside = one.path / "bin" / "python"
        wanted = f"its interpreter, {inside}" if inside.exists() else example
        raise BadInput(f"{one.flag}: a folder; wanted {wanted}")
    if not one.path.exists():
        raise BadInput(f"{one.flag}: no such file; wanted {example}")


def _fingerprint_of(one: Interpreter) -> dict[str, Any] | str:
    """What fingerprint.py prints there, or the reason why it printed none."""
    command = [str(one.path), *SAFE_PATH, "-m", "attnbench.harness.process.fingerprint"]
    try:
        done = run_command(command, timeout_s=ANSWER_S)
    except OSError as error:
        raise BadInput(
            f"{one.flag}: does not run ({error.strerror});"
            " wanted an interpreter, such as VENV/bin/python"
        ) from None
    except subprocess.TimeoutExpired:
        raise EnvironmentUnmet(
            f"{one.flag}: no answer within {ANSWER_S:g} s; wanted an interpreter with attnbench"
        ) from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1])  # its start-up files may print before
        return {name: answer[name] for name in ("attnbench", "schema", "code")}
    except (IndexError, ValueError, KeyError, TypeError):
        lines = done.stderr.replace(f"{one.path}: ", "").strip()
        if not lines:
            return f"attnbench printed nothing there (exit code {done.returncode})"
        return f"cannot import attnbench ({last_line(lines)})"


def difference(answer: dict[str, Any] | str, ours: Mapping[str, Any]) -> str:
    """How its attnbench differs from ours; "" if it is the same."""
    if isinstance(answer, str):
        return answer
    if answer["attnbench"] != ours["attnbench"]:
        return f"has attnbench {shown(answer['attnbench'])}"
    same_version = f"attnbench {ours['attnbench']}"
    if answer["schema"] != ours["schema"]:
        schemas = f"{shown(answer['schema'])}, not {ours['schema']}"
        return f"has {same_version} with rows of format {schemas}"
    return "" if answer["code"] == ours["code"] else f"has {same_version} with different code"


def last_line(text: str) -> str:
    """The last line of a failure: in a traceback it names the error."""
    return visible(text.strip().rpartition("\n")[2].strip())[-LAST_LINE_LENGTH:]
