"""Exponentiates scores without subtracting their maximum, which overflows for large scores."""

INCORRECT = "NaN|times as far"


def prepare(problem, inputs, weights):
    q, k, v = inputs

    def call():
        p = (q @ k.mT * problem.scale).exp()
        return p @ v / p.sum(-1, keepdim=True)

    return call
