"""A backend whose process dies of SIGKILL, as by the host's out-of-memory killer."""

import os
import signal


def prepare(problem, inputs, weights):
    def call():
        os.kill(os.getpid(), signal.SIGKILL)

    return call
