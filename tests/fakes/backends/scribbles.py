"""A backend that writes nonsense to every open file descriptor, the harness's pipe included."""

import os
from contextlib import suppress


def prepare(problem, inputs, weights):
    for fd in range(3, 64):
        with suppress(OSError):
            os.write(fd, b"nonsense\n")
    return lambda: inputs.query
