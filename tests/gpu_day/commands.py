"""Start a command, keep what it prints, and end it in time."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GRACE_S = 10.0  # from the signal that ends a command in order to the one that ends it at once


class Ended(NamedTuple):
    """`code` as a shell has it: 128 and the number of the signal that ended it."""

    code: int
    spent_s: float
    cut_off: bool


def execute(
    command: Sequence[str], log: Path, limit_s: float, environment: Mapping[str, str]
) -> Ended:
    """Its output goes to the end of `log`. It has ended, with all that it started, after `limit_s`
    seconds: GRACE_S before it gets SIGINT, at which attnbench and pytest end in order.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    cut_off = False
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A shell starts background jobs with SIGINT ignored, and they what they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        try:
            try:
                process.wait(max(1.0, limit_s - GRACE_S))
            except subprocess.TimeoutExpired:
                cut_off = True
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_S)
        finally:
            end_all(process)
    code = process.returncode
    return Ended(code if code >= 0 else 128 - code, time.monotonic() - begin, cut_off)


def end_all(process: "subprocess.Popen[bytes]") -> None:
    """The process and all of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
