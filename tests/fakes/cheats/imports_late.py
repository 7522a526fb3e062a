"""Honest: imports what it needs in its first call."""

HONEST = True


def prepare(problem, inputs, weights):
    def call():
        from attnbench.impls import fused

        return fused.attend(*inputs, None, problem)

    return call
