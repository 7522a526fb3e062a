"""A correct backend that takes its time to choose how it will work, and says what it chose."""

import time


def prepare(problem, inputs, weights):
    time.sleep(0.05)
    q, k, v = inputs

    def call():
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    call.facts = {"tile": [16, 64], "tune_ms": 50}
    return call
