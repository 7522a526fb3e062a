"""A process that has torch and the backends imported, of which workers are forks.

It is started by exec, so threads of a notebook or of pytest are never forked, and computes with one
thread: forks of a torch that had computed with two hung, 5 of 5. No GPU is visible to it, since no
fork could use it.

A message from the run is four descriptors: the fork's line to the run, its guard's status, where it
prints, and a file in memory with JSON of its program, arguments and environment.
"""

import ctypes
import gc
import json
import mmap
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock

from .child import Parent
from .worker_process import WorkerProcess

PROGRAM = "attnbench.harness.process.fork_server"
HUGE_PAGE_BYTES = 2 << 20
"""Forks of a server would have their memory at the same addresses, where processes that are started
by exec differ, within a huge page too, and with it their times: the ratios of three backends
differed by 3.2 to 3.8 % between 12 processes (standard deviation), by 1.5 to 3.1 % between forks,
and by 2.4 to 2.8 % between forks whose memory is shifted.
"""
THREADS = Path("/proc/self/task")


class ForkServer:
    """Started with the first worker, and again if it has ended. Forks inherit its folder, limits
    and niceness, so it is for one run.

    `program`: the module whose `warm()` it calls before it forks. That may start no thread: a fork
    would lack it, and at its end wait for it (torch's profiler starts one).
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._process: WorkerProcess | None = None
        self._lock = Lock()

    def fork(self, fds: Sequence[int], start: bytes) -> WorkerProcess:
        """Let the server fork once it is ready; the server. Raises WorkerFailure, OSError."""
        with self._lock, os.fdopen(os.memfd_create("start"), "wb", buffering=0) as file:
            file.write(start)
            if self._process is None or self._process.exit_code is not None:
                self.close()
                self._process = WorkerProcess(PROGRAM, self._program, name="fork server")
            self._process.hand_over([*fds, file.fileno()])
            return self._process

    def close(self) -> None:
        """All its forks end with it. Safe to call twice."""
        if self._process is not None:
            self._process.kill(term_s=0)


# ---- in the server -------------------------------------------------------------------------------


def main() -> None:
    parent, server = Parent(), os.getpid()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # After Parent: torch takes seconds, and an orphan must not live that long.
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _warm(parent.arguments[0])
    if fds := _fds_in_fork(parent.line_fd):
        torch.set_num_threads(threads)
        _shift_memory()
        program = _become(server, *fds)
        import_module(program).main()


def _warm(program: str) -> None:
    warm = import_module(program).warm
    before = len([*THREADS.iterdir()])
    warm()
    if len([*THREADS.iterdir()]) > before:
        raise RuntimeError(f"{program}.warm has started a thread, which forks would lack")
    gc.collect()
    gc.freeze()  # the collector would write to memory that all forks share


def _fds_in_fork(line_fd: int) -> list[int]:
    """Fork at each message and return its descriptors there; none once no more come."""
    with socket.socket(fileno=line_fd) as line:
        while True:
            message, fds, _, _ = socket.recv_fds(line, 1, 4)
            if not message:
                return []
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            with suppress(OSError):  # no process is left: the run finds its descriptors closed
                if os.fork() == 0:
                    return fds
            for fd in fds:
                os.close(fd)


def _shift_memory() -> None:
    """What is allocated from here on, in the heap and in mappings, begins somewhere else."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    for_heap, for_mappings = (
        secrets.randbelow(HUGE_PAGE_BYTES // mmap.PAGESIZE) * mmap.PAGESIZE for _ in range(2)
    )
    libc.sbrk(ctypes.c_ssize_t(for_heap))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    # never unmapped, never touched
    libc.mmap(None, ctypes.c_size_t(for_mappings + mmap.PAGESIZE), 0, flags, -1, 0)


def _become(server: int, line_fd: int, status_fd: int, output_fd: int, start_fd: int) -> str:
    """Leave the server's session, take what the run gave, and return the program."""
    os.setsid()
    for fd in (1, 2):
        os.dup2(output_fd, fd)
    os.close(output_fd)
    with open(start_fd, "rb") as start:
        start.seek(0)
        program, arguments, environment = json.load(start)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [program, *map(str, (line_fd, status_fd, server)), *arguments]
    return str(program)


if __name__ == "__main__":
    main()
