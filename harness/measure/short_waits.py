"""Let OpenMP threads sleep soon while they wait for each other, so that waiting takes no processor.

A thread of libgomp that waits for another one spins for milliseconds first, and what it spins is
processor time. While there are more OpenMP threads than processors it spins 100 times instead of
300 000 (libgomp's manual, GOMP_SPINCOUNT), from one wait to the next. So a second team that sleeps
switches spinning off, and its end switches it on again.
"""

import os
import re
from contextlib import suppress
from ctypes import CDLL, c_void_p, cast
from pathlib import Path
from threading import Event, Thread

import torch

MAPS = Path("/proc/self/maps")
RUNTIME = re.compile(r"(/\S*/lib([gi]?omp)\S*\.so\S*)$", re.MULTILINE)
MOST_START_S = 5.0


class ShortWaits:
    """`needless`: with one thread there are no waits. `in_force`: they are short now."""

    def __init__(self) -> None:
        threads, cores = torch.get_num_threads(), len(os.sched_getaffinity(0))
        self.libraries = gomp_libraries() if 1 < threads <= cores else []
        self.needless = threads == 1
        self.team = cores - threads + 2  # with its master one more than fits
        self._over: Event | None = None

    @property
    def in_force(self) -> bool:
        return self._over is not None

    def begin(self) -> None:
        """Has no effect where that cannot be done."""
        if self.in_force or not self.libraries:
            return
        started, over = Event(), Event()
        with suppress(RuntimeError):  # no thread can be started
            Thread(target=self._hold_team, args=(started, over), daemon=True).start()
            if started.wait(MOST_START_S):
                self._over = over

    def end(self) -> None:
        if self._over is not None:
            self._over.set()  # libgomp gives the team back when its master thread ends
            self._over = None

    def _hold_team(self, started: Event, over: Event) -> None:
        for library in self.libraries:
            nothing = cast(library.omp_in_parallel, c_void_p)
            library.GOMP_parallel(nothing, None, self.team, 0)
        started.set()
        over.wait()


def gomp_libraries() -> list[CDLL]:
    """Those in this process; none if another OpenMP runtime is there too, which spins as well."""
    with suppress(OSError, AttributeError):
        found = set(RUNTIME.findall(MAPS.read_text()))
        if all(name == "gomp" for _, name in found):
            return [CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW) for path, _ in sorted(found)]
    return []
