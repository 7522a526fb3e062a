"""A backend that is right and fast until it is repeated under the device's counters: then its
process dies of SIGSEGV.
"""

import os
import signal
import sys


def prepare(problem, inputs, weights):
    q, k, v = inputs
    frames = 12  # at most so many lie between a call and the loop that makes it

    def call():
        frame = sys._getframe()
        for _ in range(frames):
            if (
                frame is not None
                and frame.f_globals.get("__name__") == "attnbench.harness.measure.steady_loop"
            ):
                os.kill(os.getpid(), signal.SIGSEGV)
            frame = frame.f_back if frame is not None else None
        return (q @ k.mT / problem.d_k**0.5).softmax(-1) @ v

    return call
