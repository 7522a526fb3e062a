"""Signals during a run, and between its end and that of the program."""

import signal
import subprocess
import sys

import pytest

from tests.conftest import ran

PROGRAM = """
import os, signal
from attnbench.harness.process.signals import Signals

with Signals(embedded={embedded}) as signals:
    os.kill(os.getpid(), signal.{first})
    assert signals.received == signal.{first}
print("closing", flush=True)
os.kill(os.getpid(), signal.{second})
print("after", flush=True)
"""


def ended(first: str, second: str, *, embedded: bool = False) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(first=first, second=second, embedded=embedded)
    return ran([sys.executable, "-c", program])


@pytest.mark.long
@pytest.mark.parametrize("second", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_second_signal_while_the_program_closes_ends_it_with_its_exit_code(second: str) -> None:
    done = ended("SIGTERM", second)
    assert done.stdout == "closing\n"
    assert done.returncode == 128 + signal.Signals[second]
    assert "stopped at once" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_that_goes_on_after_the_run_has_its_own_handlers_again() -> None:
    done = ended("SIGTERM", "SIGHUP", embedded=True)
    assert done.returncode == -signal.SIGHUP
