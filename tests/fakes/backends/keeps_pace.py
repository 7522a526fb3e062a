"""A correct backend that takes the SLEEP_S of the package attnbench_test_pace; None: it crashes."""

import os
import signal
import time

NEEDS = ("attnbench_test_pace",)


def prepare(problem, inputs, weights):
    from attnbench_test_pace import SLEEP_S

    q, k, v = inputs

    def call():
        if SLEEP_S is None:
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(SLEEP_S)
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    return call
