"""Beside other programs: `--wait-idle` begins once they leave the cores alone."""

import re
import time

from ..devices.load import LoadMeter, busy_text
from ..files.errors import BadInput, Spelling, option, shown, spelled
from ..files.printable import duration_text

READ_S, IDLE_READINGS = 1.0, 3  # an idle machine has so many in a row
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


def seconds_of(text: str) -> float:
    """90, 90s, 10m or 1h. Raises BadInput."""
    found = re.fullmatch(r"([0-9]{1,6})([smh]?)", text.strip())
    if found is None:
        raise BadInput(f"{option('wait_idle')}: {shown(text)}: wanted a time, such as 90s or 10m")
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
        say(f"note: {spelled(text, Spelling.SHELL)}", stderr=True)
