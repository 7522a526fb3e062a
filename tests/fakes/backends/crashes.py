"""A backend whose process dies of SIGSEGV."""

import os
import signal


def prepare(problem, inputs, weights):
    def call():
        os.kill(os.getpid(), signal.SIGSEGV)

    return call
