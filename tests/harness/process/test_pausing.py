"""A worker that is not asked is stopped, with all that it has started."""

import signal
import time

import psutil
import pytest

from attnbench.harness.process import replies
from attnbench.harness.process.worker_process import WorkerProcess

PROGRAM = "attnbench.harness.worker.judging"

pytestmark = pytest.mark.long


def wait_until(pid, *, stopped):
    deadline_s = time.monotonic() + 60
    while (psutil.Process(pid).status() == psutil.STATUS_STOPPED) != stopped:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_paused_worker_does_nothing_until_it_resumes_and_still_ends():
    worker = WorkerProcess(PROGRAM, replies=replies.JUDGE)
    worker.wait_ready(60)
    worker.pause()
    wait_until(worker.pid, stopped=True)
    worker.resume()
    wait_until(worker.pid, stopped=False)
    worker.pause()
    worker.close()
    assert worker.exit_code in (0, -signal.SIGTERM)  # it heard what a stopped process does not
