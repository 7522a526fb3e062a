"""A backend that never returns."""

import time


def prepare(problem, inputs, weights):
    return lambda: time.sleep(3600)
