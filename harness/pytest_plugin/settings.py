"""What pytest's options and ini file say about scenarios."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..record import FAILURES, Status

MAY_BE_EXPECTED = (Status.OOM, Status.PREDICTED_OOM, *sorted(FAILURES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`changes`: of every scenario, as --set of the command line has them."""

    changes: tuple[str, ...]
    root: Path
    expected: frozenset[Status]
    wait: bool


def settings_of(config: pytest.Config) -> Settings:
    """The command line before the ini file. Raises UsageError."""

    def given(name: str) -> str:
        return str(
            config.getoption(f"attnbench_{name}") or config.getini(f"attnbench_{name}") or ""
        )

    fields = {
        "device": given("device"),
        "limits.timeout_s": config.getoption("attnbench_timeout"),
        "plan": given("plan"),
    }
    out = config.getoption("attnbench_out")
    return Settings(
        changes=(
            *config.getini("attnbench_set"),
            *config.getoption("attnbench_set"),
            *(f"{field}={value}" for field, value in fields.items() if value),
        ),
        root=(
            Path(out).absolute()
            if out
            else config.rootpath / (config.getini("attnbench_out") or "results")
        ),
        expected=expected_statuses(given("expect")),
        wait=config.getoption("attnbench_wait"),
    )


def expected_statuses(text: str) -> frozenset[Status]:
    """From "oom,timeout". Where running out of memory is expected, so is that it was predicted."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in MAY_BE_EXPECTED:
            raise pytest.UsageError(
                f"--attnbench-expect: no failing status {word!r}; there are:"
                f" {', '.join(MAY_BE_EXPECTED)}"
            )
    return frozenset(map(Status, words)) | (
        {Status.PREDICTED_OOM} if Status.OOM in words else set()
    )


def in_words_of_pytest(text: object) -> str:
    """The command line's messages name its flags; here each has a longer name."""
    return re.sub(r"(?<![\w-])--(set|device|out|timeout|wait|plan)\b", r"--attnbench-\1", str(text))
