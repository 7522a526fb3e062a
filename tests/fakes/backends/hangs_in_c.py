"""A backend that never returns and never lets another Python thread run."""

import ctypes


def prepare(problem, inputs, weights):
    return lambda: ctypes.PyDLL(None).sleep(3600)
