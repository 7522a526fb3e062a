"""Nobody reads what attnbench prints, or it cannot be printed: the run goes on and keeps its
rows.
"""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from ..rows import check_rows
from ..trial import SMALL, Trial

TITLE = "stdout or stderr closed, full or of another encoding; hang-up under nohup"
COUNT = 28
SHORT = 1
ENCODINGS: tuple[dict[str, str], ...] = (
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"TERM": "dumb", "COLUMNS": "1"},
    {"COLUMNS": "0", "LINES": "x"},
)


def attempt(trial: Trial) -> None:
    random = trial.random
    way = ("closed", "full", "nobody reads", "reads a little", "encoding", "hang-up")[
        trial.number % 6
    ]
    stream = random.choice(("stdout", "stderr"))
    quiet = random.choice(((), ("--quiet",), ("--json",)))
    trial.outcome.what = f"{stream} {way} {' '.join(quiet)}"
    how: dict[str, Any] = {}
    if way == "closed":
        how["before"] = closing(1 if stream == "stdout" else 2)
    elif way == "full":
        how[stream] = os.open("/dev/full", os.O_WRONLY)
    elif way == "encoding":
        how["env"] = random.choice(ENCODINGS)
    elif way == "hang-up":
        how["before"] = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    else:
        reading, how[stream] = os.pipe()
    process = trial.start("run", *SMALL, "--out", trial.results, *quiet, **how)
    if way == "hang-up":
        time.sleep(random.uniform(0, 5))
        process.send_signal(signal.SIGHUP)
    if way == "reads a little":
        os.close(how[stream])
        os.read(reading, random.choice((1, 10, 100)))
        os.close(reading)
    elif way == "nobody reads":
        os.close(how[stream])
        os.close(reading)
    trial.end(process, (0,) if way in ("encoding", "hang-up") else (0, 1, 7))
    for run in trial.runs():
        check_rows(run, trial.outcome)
    trial.outcome.expect(len(trial.runs()) == 1, f"{len(trial.runs())} runs")


def closing(fd: int) -> Callable[[], None]:
    return lambda: os.close(fd)
