"""A backend whose process dies of a signal that has no name."""

import os


def prepare(problem, inputs, weights):
    def call():
        os.kill(os.getpid(), 35)

    return call
