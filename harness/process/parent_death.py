"""A child process that ends when its parent does, however the parent ends."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies. "Parent" is the thread that started
    it, which must live as long.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
