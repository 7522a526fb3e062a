"""The interpreters that a run measures in, by name (`--python NAME=PATH`). Each is asked what it
has before anything is measured.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ..errors import BadInput, EnvironmentUnmet, shown
from .fingerprint import introduction

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
EXAMPLE = "--python old=VENV/bin/python --python new=OTHER/bin/python"
ANSWER_S = 60.0  # an interpreter on a cold network disk
MOST_WORDS = 200

Answer = dict[str, Any] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """`path` is absolute, and its links are not followed: the python of a venv is a link to one
    that knows nothing of the venv.
    """

    name: str
    path: Path

    @property
    def said(self) -> str:
        return f"--python {self.name}={self.path}"

    def run_json(self, environment: dict[str, Any]) -> dict[str, Any]:
        """As run.json has it; `environment` is what a worker of it tells."""
        return {"name": self.name, "path": str(self.path), "environment": environment}


def read_interpreters(texts: Sequence[str]) -> tuple[Interpreter, ...]:
    """From `NAME=PATH`, two or more. Raises BadInput."""
    found: dict[str, Interpreter] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise BadInput(
                f"--python {shown(text)}: no name for it; wanted NAME=PATH, such as {EXAMPLE}"
            )
        if not NAME.fullmatch(name):
            raise BadInput(
                f"--python {shown(text)}: not a name; wanted up to 32 lowercase letters, digits, .,"
                f" _ and -, such as {EXAMPLE}"
            )
        if name in found:
            raise BadInput(
                f"--python: {name}: given twice; wanted a name of its own for each, such as"
                f" {EXAMPLE}"
            )
        found[name] = Interpreter(name=name, path=Path(path).expanduser().absolute())
    if len(found) == 1:
        raise BadInput(
            "--python: one interpreter, and nothing to compare it with; wanted two or more, such"
            f" as {EXAMPLE}"
        )
    return tuple(found.values())


def interview(interpreters: Sequence[Interpreter]) -> None:
    """Whether each can measure: it runs, and has the attnbench that this one is. Raises BadInput
    and EnvironmentUnmet.
    """
    ours = introduction()
    for one in interpreters:
        _refuse_no_file(one)
        found = _what_is_wrong(_asked(one), ours)
        if found:
            wanted = (
                f"wanted attnbench {ours['attnbench']} as this one is, so that equal code"
                " measures all"
            )
            raise EnvironmentUnmet(f"{one.said}: {found}; {wanted}: {install_command(one.path)}")


def install_command(python: Path) -> str:
    """What gives an interpreter our attnbench: from the checkout that this one runs from, or by
    version.
    """
    checkout = Path(__file__).resolve().parents[2]
    what = str(checkout) if (checkout / "pyproject.toml").is_file() else f"attnbench=={__version__}"
    return f"{python} -m pip install {what}"


def _refuse_no_file(one: Interpreter) -> None:
    if one.path.is_dir():
        inside = one.path / "bin" / "python"
        hint = (
            f"its interpreter, {inside}"
            if inside.exists()
            else "an interpreter, such as VENV/bin/python"
        )
        raise BadInput(f"{one.said}: a folder; wanted {hint}")
    if not one.path.exists():
        raise BadInput(f"{one.said}: no such file; wanted an interpreter, such as VENV/bin/python")


def _asked(one: Interpreter) -> Answer:
    """What its attnbench says of itself, in a process that imports nothing heavy; or what was
    printed instead.
    """
    command = [str(one.path), "-m", "attnbench.harness.process.fingerprint"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, check=False
        )
    except OSError as error:
        raise BadInput(
            f"{one.said}: does not run ({error.strerror}); wanted an interpreter, such as"
            " VENV/bin/python"
        ) from None
    except subprocess.TimeoutExpired:
        raise EnvironmentUnmet(
            f"{one.said}: no answer within {ANSWER_S:g} s; wanted an interpreter that has attnbench"
        ) from None
    try:
        answer = json.loads(
            done.stdout.splitlines()[-1]
        )  # whatever its start-up files print comes before
        return {name: answer[name] for name in ("attnbench", "schema", "code")}
    except (IndexError, ValueError, KeyError, TypeError):
        lines = (
            done.stderr.decode(errors="replace").replace(f"{one.path}: ", "").strip().splitlines()
        )
        return (
            f"cannot import attnbench ({last_words(lines)})"
            if lines
            else f"said nothing of attnbench (exit code {done.returncode})"
        )


def _what_is_wrong(answer: Answer, ours: Mapping[str, Any]) -> str:
    """ "" where it is the same attnbench."""
    if isinstance(answer, str):
        return answer
    if answer["attnbench"] != ours["attnbench"]:
        return f"has attnbench {shown(answer['attnbench'])}"
    if answer["schema"] != ours["schema"]:
        return (
            f"has attnbench {ours['attnbench']} with rows of format {shown(answer['schema'])}, not"
            f" {ours['schema']}"
        )
    return (
        ""
        if answer["code"] == ours["code"]
        else f"has an attnbench {ours['attnbench']} of other code"
    )


def last_words(lines: Sequence[str]) -> str:
    """The last line of a failure, inert in a terminal: that of a traceback names the error."""
    text = lines[-1].strip()
    return (text if text.isprintable() else ascii(text))[-MOST_WORDS:]
