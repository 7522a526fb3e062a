"""A backend that writes nonsense on every open file descriptor, the harness's own pipe
among them.
"""

import os
from contextlib import suppress


def prepare(problem, inputs, weights):
    for fd in range(3, 64):
        with suppress(OSError):
            os.write(fd, b"nonsense\n")
    return lambda: inputs[0]
