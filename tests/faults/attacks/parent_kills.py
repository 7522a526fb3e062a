"""The parent is killed at a random moment of a run, or of the run that resumes it."""

import signal
import time

from ..rows import whole_lines
from ..trial import EXIT_CODES, SMALL, Trial, name_of

TITLE = "parent killed at a random moment, then resumed"
COUNT = 70
SHORT = 1
DEADLY = (
    *[signal.SIGKILL] * 8,
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) * 3,
    *(signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV, signal.SIGUSR1, signal.SIGALRM),
    *(signal.SIGXCPU, signal.SIGRTMIN, signal.SIGRTMIN + 1),
)
ORDERLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LATEST_S = 6.0  # a run of SMALL takes about that on a busy machine
PYTHON_S = 0.5  # its own start, in which Ctrl-C is a traceback that no program can prevent
STARTING_S = 5.0  # importing, on a busy machine: signals have no handlers yet


def attempt(trial: Trial) -> None:
    out = ("--out", trial.results)
    kill(trial, "run", *SMALL, *out)
    for _ in range(2):
        for run in trial.runs():
            before = whole_lines(run)
            if trial.random.random() < 0.4:
                kill(trial, "run", "--resume", run)
            trial.outcome.expect(whole_lines(run)[: len(before)] == before, "rows changed")
    for run in trial.runs():
        trial.complete(run)
    if not trial.runs():  # it was killed before there was a run: nothing is in the way of the next
        trial.call("run", *SMALL, *out, allowed=(0,))
        trial.outcome.expect(trial.runs(), "no run after a run")
    trial.call("list", "runs", *out, allowed=(0,))


def kill(trial: Trial, *words: object) -> None:
    """Start a command, and kill it at a random moment: of its time, or after a number of rows."""
    random, process, started = trial.random, trial.start(*words), time.monotonic()
    number = random.choice(DEADLY)
    if random.random() < 0.5:
        rows = trial.rows_on_disk() + random.randrange(4)
        moment = f"after row {rows}"
        trial.wait_until(lambda: trial.rows_on_disk() >= rows and trial.runs(), process)
        time.sleep(random.choice((0, 0.001, 0.01, 0.1, 0.3)) * random.random())
    else:
        wait_s = random.uniform(0, LATEST_S)
        moment = f"after {wait_s:.2f} s"
        trial.wait_until(lambda: time.monotonic() - started >= wait_s, process)
    if number == signal.SIGINT:
        trial.wait_until(lambda: time.monotonic() - started >= PYTHON_S, process)
    process.send_signal(number)
    trial.outcome.what += f"{name_of(number)} {moment}; "
    if again := number in ORDERLY and random.random() < 0.3:
        time.sleep(random.uniform(0, 0.5))
        process.send_signal(number)
    # a signal may come while the interpreter itself starts, when the run is over and only its
    # summary is being printed, or be one that nobody handles; a second one, while the interpreter
    # ends and has given the signals back
    starting = time.monotonic() - started < STARTING_S
    unhandled = number not in ORDERLY or starting or again or trial.measured()
    trial.end(process, EXIT_CODES | {-number} if unhandled else EXIT_CODES)
    trial.none_left()
