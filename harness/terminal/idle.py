"""Beside other programs: `--wait-idle` begins once they leave the cores alone, and without
`--threads` a run takes the cores that they leave.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..files.errors import BadInput, shown
from ..files.printable import duration_text
from ..machine.load import LEAST_S, LoadMeter, busy_text
from ..machine.nvml import has_gpu

READ_S, IDLE_READINGS = 1.0, 3  # an idle machine has so many in a row
THREADS = "OMP_NUM_THREADS"
UNITS_S = {"s": 1, "m": 60, "h": 3600, "": 1}


def wait_until_idle(longest: str | None, *, quiet: bool = False) -> None:
    """Say if it never was. Does nothing without a time. Raises BadInput."""
    if longest is None:
        return
    from .live_bar import Steps
    from .progress import say

    begun_s, longest_s = time.monotonic(), seconds_of(longest)
    load, idle, meter = None, 0, LoadMeter()
    with Steps(quiet=quiet) as steps:
        while idle < IDLE_READINGS and time.monotonic() - begun_s < longest_s:
            time.sleep(READ_S)
            load = meter.busy()
            meter.restart()
            idle = 0 if load else idle + 1
            steps.step(f"waiting: {load.text}" if load else "waiting: the machine is idle")
    if load and not quiet:
        say(f"still busy after {duration_text(longest_s)}: {load.text}", stderr=True)


@contextmanager
def on_idle_cores(*, quiet: bool) -> Iterator[str]:
    """Workers that start meanwhile have as many threads as cores are idle now, at least one; gives
    a sentence that says so, "" for all cores. Not if the user has chosen, nor for a GPU.

    With two threads beside two busy loops on two cores 1 to 4 of quickstart's 10 pairs were
    decided, with one 10 of 10.
    """
    from .progress import say

    text = ""
    if THREADS not in os.environ and not has_gpu():
        meter = LoadMeter()
        time.sleep(1.5 * LEAST_S)
        if load := meter.busy():
            threads = max(1, int(load.cores - load.others))
            text = (
                f"measured with {threads} of {load.cores} threads, because {load.text}; --threads"
                f" {load.cores} takes all"
            )
            os.environ[THREADS] = str(threads)
            if not quiet:
                say(f"note: {text}", stderr=True)
    try:
        yield text
    finally:
        if text:
            os.environ.pop(THREADS, None)


def keep_threads(run: Path) -> None:
    """What is resumed has as many threads as it had, unless the user has chosen."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if THREADS not in os.environ:
            known = json.loads((run / "run.json").read_bytes())
            os.environ[THREADS] = str(int(known["environment"]["threads"]))


def seconds_of(text: str) -> float:
    """90, 90s, 10m or 1h. Raises BadInput."""
    found = re.fullmatch(r"([0-9]{1,6})([smh]?)", text.strip())
    if found is None:
        raise BadInput(f"--wait-idle {shown(text)}: wanted a time, such as 90s or 10m")
    return int(found[1]) * UNITS_S[found[2]]


def await_idle(longest: str | None, *, quiet: bool, means: str = "") -> None:
    """The same, then a warning if the machine is busy: what has several runs says it once.

    `means`: what that means, if it is not what it means for times of a run. Raises BadInput.
    """
    from .progress import say

    wait_until_idle(longest, quiet=quiet)
    if quiet:
        return
    meter = LoadMeter()
    time.sleep(READ_S)
    if text := busy_text(meter.busy(), processes=0 if means else 2, means=means):
        say(f"note: {text}", stderr=True)
