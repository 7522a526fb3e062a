"""A backend whose process is killed from outside, as the host's out-of-memory killer does."""

import os
import signal


def prepare(problem, inputs, weights):
    def call():
        os.kill(os.getpid(), signal.SIGKILL)

    return call
