"""pytest's options and ini settings for scenarios."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..files.printable import visible
from ..rows.record import FAILURES, Status

EXPECTABLE = (Status.OOM, Status.PREDICTED_OOM, *sorted(FAILURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`changes`: of every scenario, in the form of the command line's --set."""

    changes: tuple[str, ...]
    root: Path
    expected: frozenset[Status]
    wait: bool


def settings_of(config: pytest.Config) -> Settings:
    """The command line wins over the ini file. Raises UsageError."""

    def option(name: str) -> str:
        name = f"attnbench_{name}"
        return str(config.getoption(name) or config.getini(name) or "")

    fields = {
        "device": option("device"),
        "limits.timeout_s": config.getoption("attnbench_timeout"),
        "plan": option("plan"),
    }
    out = config.getoption("attnbench_out")
    default = config.rootpath / (config.getini("attnbench_out") or "results")
    return Settings(
        changes=(
            *config.getini("attnbench_set"),
            *config.getoption("attnbench_set"),
            *(f"{field}={value}" for field, value in fields.items() if value),
        ),
        root=Path(out).absolute() if out else default,
        expected=expected_statuses(option("expect")),
        wait=config.getoption("attnbench_wait"),
    )


def expected_statuses(text: str) -> frozenset[Status]:
    """From "oom,timeout". Expecting oom includes predicted_oom. Raises UsageError."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in EXPECTABLE:
            there_are = ", ".join(EXPECTABLE)
            raise pytest.UsageError(
                f"--attnbench-expect: no failing status {word!r}; there are: {there_are}"
            )
    predicted = {Status.PREDICTED_OOM} if Status.OOM in words else set()
    return frozenset(map(Status, words)) | predicted


def with_pytest_options(text: object) -> str:
    """A message of the command line, for pytest's terminal: its options have other names there."""
    safe = visible(str(text), lines=True)
    return re.sub(r"(?<![\w-])--(set|device|out|timeout|wait|plan)\b", r"--attnbench-\1", safe)
