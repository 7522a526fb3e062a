"""A correct backend that prints a lot, on stdout and stderr."""

import sys


def prepare(problem, inputs, weights):
    for _ in range(2000):
        print("x" * 4000)
        print("y" * 4000, file=sys.stderr)
    print("the last words")
    q, k, v = inputs
    return lambda: (q @ k.mT * problem.scale).softmax(-1) @ v
