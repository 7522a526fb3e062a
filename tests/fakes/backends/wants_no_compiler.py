"""Fails where torch's compiler has been imported beside it."""

import sys

from attnbench.impls import fused


def prepare(problem, inputs, weights):
    call = fused.prepare(problem, inputs, weights)

    def checked():
        if "torch._dynamo" in sys.modules:
            raise RuntimeError("torch's compiler is here")
        return call()

    return checked
