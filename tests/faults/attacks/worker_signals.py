"""A worker, or another process of the run, gets any signal at any moment: the run ends by itself,
and every case has its row.
"""

import time
from contextlib import suppress

import psutil

from attnbench.harness.process.worker_process import READY_S

from ..rows import check_rows
from ..trial import LIMIT_S, SMALL, Trial, name_of

TITLE = "workers killed or stopped by any signal"
COUNT = 30
SHORT = 1
LATEST_S = 5.0


def attempt(trial: Trial) -> None:
    random = trial.random
    process = trial.start("run", *SMALL, "--out", trial.results, "--timeout", 5, "--quiet")
    numbers = [number for number in range(1, 65) if number not in (32, 33)]  # those are libc's
    sent = 0
    for _ in range(random.choice((1, 1, 2, 4))):
        number = random.choice(numbers)
        wait_until = time.monotonic() + random.uniform(0, LATEST_S)
        trial.wait_until(lambda: time.monotonic() > wait_until, process)  # noqa: B023
        with suppress(psutil.Error):
            children = psutil.Process(process.pid).children(recursive=True)
            if children:
                random.choice(children).send_signal(number)
                sent += 1
                trial.outcome.what += f"{name_of(number)}; "
    # one that is stopped before it is ready is waited for as one on a slow disk
    code = trial.end(process, (0, 1, 2, 4), READY_S + LIMIT_S)
    if trial.runs():
        check_rows(trial.runs()[0], trial.outcome)
    else:  # the first worker was lost before there was a plan
        trial.outcome.expect(code and sent, f"no run, and exit code {code}")
        trial.outcome.expect(trial.said().strip(), "no run, and no reason")
