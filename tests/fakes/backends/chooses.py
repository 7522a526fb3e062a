"""A correct backend that chooses a configuration for 50 ms and reports it."""

import time


def prepare(problem, inputs, weights):
    time.sleep(0.05)
    q, k, v = inputs

    def call():
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    call.facts = {"tile": [16, 64], "tune_ms": 50}
    return call
