"""Exceptions that end a command with a message instead of a traceback, and an exit code."""

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from .printable import visible

CLOSE = 0.7  # tpu is not a misspelt cpu
MOST_TRACEBACK = 4096  # characters; an exception's message may have any number


MARK = "\ufdd0"  # no character: it stands in no text of a user
LITERAL = re.compile(r"True|-?[0-9]+(\.[0-9]+)?|'.*'")
OPTION = re.compile(f"{MARK}([a-zA-Z_]+)=([^{MARK}]*){MARK}")


class Spelling(StrEnum):
    """How a user gave the options that a message names."""

    SHELL = "--memory-gib 2"
    PYTHON = "memory_gib=2"
    PYTEST = "--attnbench-memory-gib 2"


def option(name: str, value: object = "") -> str:
    """A field of a request in a message, such as memory_gib, to be `spelled` as the user has it.

    `value`: what a next step gives it; True of a switch. What a shell takes without an option's
    name is in capitals: RUN.
    """
    return f"{MARK}{name}={value}{MARK}"


def spelled(text: str, spelling: Spelling) -> str:
    """The text with its options: --memory-gib 2, memory_gib=2, --wait, wait=True."""

    def one(found: re.Match[str]) -> str:
        name, value = found.groups()
        if spelling is Spelling.PYTHON:
            literal = value if LITERAL.fullmatch(value) else repr(value)
            return f"{name.lower()}={literal}" if value else name.lower()
        if name.isupper():
            return name
        start = "--" if spelling is Spelling.SHELL else "--attnbench-"
        words = [
            f"{start}{name.replace('_', '-')}",
            *([value] if value not in ("", "True") else []),
        ]
        return " ".join(words)

    return OPTION.sub(one, text)


class Refusal(Exception):
    """The command ends with this message: a line for each argument, whatever texts of others it
    holds. A line of theirs could be a command in a job of GitHub. As text it is spelled for a
    shell.
    """

    exit_code = 2

    def __init__(self, *problems: str, exit_code: int | None = None) -> None:
        self.problems = tuple(map(visible, problems))
        if exit_code is not None:
            self.exit_code = exit_code
        super().__init__(self.spelled(Spelling.SHELL))

    def spelled(self, spelling: Spelling) -> str:
        return "\n".join(spelled(one, spelling) for one in self.problems)


class BadInput(Refusal, ValueError):
    """The user's input cannot be used. A ValueError, for callers from Python.

    One line per problem: `place: what was found; what was wanted; next step`, where place is
    file:line:col, a flag, or nothing.
    """


class EnvironmentUnmet(Refusal):
    """This machine lacks what was asked for."""

    exit_code = 4


class NothingSelected(Refusal):
    """Filters left no case."""

    exit_code = 5


class StoreError(Refusal):
    """A row could not be written; `unsaved` are the rows that are not on disk."""

    exit_code = 1

    def __init__(self, message: str, unsaved: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.unsaved = unsaved


class Stopped(Refusal):
    """A signal came before the run had anything to end in order."""

    def __init__(self, number: int) -> None:
        said = "stopped before the first case; nothing was measured"
        super().__init__(said, exit_code=128 + number)


@contextmanager
def unless_refused(
    place: object, next_step: str, what: str = "cannot be written"
) -> Iterator[None]:
    """Raises BadInput where the system refuses to write: `place: what (why); next_step`."""
    try:
        yield
    except BrokenPipeError:  # whoever read it has gone, as behind a pipe of the shell
        raise
    except OSError as error:
        raise BadInput(f"{place}: {what} ({error.strerror}); {next_step}") from None


def shown(value: object) -> str:
    """A value for a message: on one line, short, and safe for a terminal."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | list | tuple):
        kind = "a mapping" if isinstance(value, Mapping) else "a list"
        return f"{kind} of {len(value)}"
    text = repr(value) if not isinstance(value, str) or value.isprintable() else ascii(value)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def suggestion(value: object, known: Iterable[str]) -> str:
    """'did you mean fp32? ' for a name that is close to a known one, and sdpa:flash for flash; else
    "".
    """
    names = [*known]
    close = [one for one in names if one.endswith(f":{value}")]
    if not close and isinstance(value, str):
        close = get_close_matches(value, names, 1, CLOSE)
    return f"did you mean {' or '.join(close)}? " if close else ""


def instead_of(value: object, known: Iterable[str]) -> str:
    """What to say of a name that is not known: the one that it is close to, else all."""
    known = [*known]
    return suggestion(value, known).strip() or f"there are: {', '.join(known)}"


def first_line(error: BaseException) -> str:
    """Type and first line of an exception, as the reason in a row."""
    text = str(error).strip().split("\n")[0][:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def traceback_end() -> str:
    """The end of the traceback of the exception that is handled, for the log in a row."""
    return traceback.format_exc()[-MOST_TRACEBACK:]
