"""The parent is killed at each step that changes a file or a process: before the folder exists, at
a rename, in the middle of a row, before a worker starts; and again while the run is resumed.
"""

import signal
import sys
from pathlib import Path

from ..rows import whole_lines
from ..trial import EXIT_CODES, SMALL, Trial, name_of

TITLE = "parent killed at every step of a run, then resumed"
COUNT = 48
SHORT = 1
STEPS, STEPS_OF_RESUME = 48, 30  # a run of SMALL has 47
PROGRAM = Path(__file__).parents[1] / "dies_at_step.py"
ORDERLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def attempt(trial: Trial) -> None:
    out = ("--out", trial.results)
    kill(trial, 1 + trial.number * 11 % STEPS, "run", *SMALL, *out, "--quiet")  # 11: early and late
    for run in trial.runs():
        before = whole_lines(run)
        if trial.random.random() < 0.5:
            step = trial.random.randint(1, STEPS_OF_RESUME)
            kill(trial, step, "run", "--resume", run, "--quiet")
        trial.outcome.expect(whole_lines(run)[: len(before)] == before, "rows changed")
        trial.complete(run, (0,), "--quiet")
    if not trial.runs():
        trial.call("run", *SMALL, *out, "--quiet", allowed=(0,))
        trial.outcome.expect(trial.runs(), "no run after a run")


def kill(trial: Trial, step: int, *words: object) -> None:
    number = trial.random.choice((signal.SIGKILL, signal.SIGKILL, *ORDERLY))
    most_bytes = trial.random.choice((0, 1, 7, 100, 2000, 10**6))
    trial.outcome.what += f"{name_of(number)} at step {step}; "
    program = (sys.executable, "-P", PROGRAM, step, int(number), most_bytes)
    # signals may come while nobody handles them yet, or no longer
    allowed = {*EXIT_CODES, -number}
    trial.end(trial.start(*words, program=tuple(map(str, program))), allowed)
    trial.none_left()
