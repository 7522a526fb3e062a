"""A correct backend whose process dies of SIGSEGV in a utilization window."""

import os
import signal


def own_frame():
    """Without sys._getframe, which a backend may not call."""
    try:
        raise LookupError
    except LookupError as error:
        return error.__traceback__.tb_frame


def prepare(problem, inputs, weights):
    q, k, v = inputs
    frames = 12  # at most, between a call and the steady loop

    def call():
        frame = own_frame()
        for _ in range(frames):
            if frame is None:
                break
            if frame.f_globals.get("__name__") == "attnbench.harness.measure.steady_loop":
                os.kill(os.getpid(), signal.SIGSEGV)
            frame = frame.f_back
        return (q @ k.mT / problem.d_k**0.5).softmax(-1) @ v

    return call
