"""Settings and functions of the whole process that a backend may not leave changed: its neighbours
share them.

They are read before any backend is imported and compared after every step of a case. A change is an
error of the case that made it, and is undone.
"""

import builtins
import gc
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter, is_
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch
from torch.overrides import _pop_mode as pop_function_mode
from torch.utils._python_dispatch import _pop_mode as pop_dispatch_mode

from .torch_settings import Setting, torch_settings

PACKAGE = __name__.rpartition(".harness.")[0]
GUARDED = tuple(
    f"{PACKAGE}.{part}"
    for part in ("harness", "impls.reference", "impls.layer", "impls.masks", "impls.problem")
)
"""Our modules: how we measure, and what our own backends share."""
FOREIGN: tuple[ModuleType | type, ...] = (
    *(builtins, time, os, json, socket.socket, numpy),
    *(torch, torch.Tensor, torch.nn.functional, torch.autograd, torch.linalg, torch.nn.Module),
)
COMPUTING_KEYS = ("CPU", "CUDA", "Autograd", "Composite", "BackendSelect")
"""Of torch's dispatcher: the beginnings of those under which kernels of calls stand."""
TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
THREADS = Path("/proc/self/task")


def _settings() -> list[Setting]:
    return [
        # First what torch's functions below would pass through; a default device is a mode too.
        Setting("torch's default device", _default_device, _no_default_device),
        Setting(
            "torch's function modes",
            torch._C._len_torch_function_stack,
            partial(_pop_to, torch._C._len_torch_function_stack, pop_function_mode),
        ),
        Setting(
            "torch's dispatch modes",
            torch._C._len_torch_dispatch_stack,
            partial(_pop_to, torch._C._len_torch_dispatch_stack, pop_dispatch_mode),
        ),
        Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
        Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
        Setting("torch's grad mode", torch.is_grad_enabled, torch._C._set_grad_enabled),
        Setting("anomaly detection", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
        Setting(
            "deterministic algorithms",
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        Setting("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        Setting("the interpreter's switching", sys.getswitchinterval, sys.setswitchinterval),
        Setting("the trace function", sys.gettrace, sys.settrace),
        Setting("the profile function", sys.getprofile, sys.setprofile),
        Setting("flush denormals", _flushes_denormals, torch.set_flush_denormal),
        *torch_settings(),
        Setting("the timer", _timers, _stop_timers),
        Setting("the handler of", _handlers, _set_handlers),
        _our_threads(),
    ]


class ProcessState:
    """What it was like before any backend was loaded. `spoiled`: something cannot be put back."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._values = [setting.read() for setting in self._settings]
        self._names = [*_own_names(), *(Names(owner, ours=False) for owner in FOREIGN)]
        self._operators = set(torch.library._impls)
        # A backend may use the random number generators: they are only put back.
        self._random = [(put_back, read()) for read, put_back in _generators()]
        self.spoiled = False

    def undo(self) -> str:
        """Put everything back; what was changed, as a reason, or ""."""
        patched = [name for one in self._names if not one.unchanged() for name in one.put_back()]
        patched += self._replaced_operators()
        changes = self._undo_settings()  # through functions that are our own again
        for put_back, before in self._random:
            put_back(before)
        if patched:
            return f"replaced {', '.join(patched[:3])}: it changes what others run"
        return changes

    def _undo_settings(self) -> str:
        changes: list[str] = []
        for setting, before in zip(self._settings, self._values, strict=True):
            now = setting.read()
            if now != before:
                setting.undo(before)
                changes += _differences(setting.name, before, now)
        if not changes:
            return ""
        return f"changed {' and '.join(changes)}; settings of the whole process are the run's"

    def _replaced_operators(self) -> list[str]:
        """Of torch's own, by torch.library, where they compute: its late imports register others.
        An activated flash attention is told by `kernel_generation` (worker/kernel.py).
        """
        found = torch.library._impls
        if found == self._operators:
            return []
        added, self._operators = found - self._operators, set(found)
        replaced = [
            key
            for key in sorted(added)
            if key.startswith("aten/")
            and key.rpartition("/")[2].startswith(COMPUTING_KEYS)
            and "flash_attention" not in key
        ]
        self.spoiled = self.spoiled or bool(replaced)
        return replaced


class Names:
    """What the names of a module or class stand for, and the code of functions of ours."""

    def __init__(self, owner: Any, *, ours: bool) -> None:
        self.owner, self.ours = owner, ours
        self._note()
        self.coded = [f for f in self.values if ours and hasattr(f, "__code__")]
        self.codes = [function.__code__ for function in self.coded]

    def _note(self) -> None:
        self.names, self.values = [*vars(self.owner)], [*vars(self.owner).values()]

    def unchanged(self) -> bool:
        """In C throughout: it looks at thousands of names after every step."""
        found = vars(self.owner)
        return (
            len(found) == len(self.names)
            and all(map(is_, found.values(), self.values))
            and all(map(is_, map(attrgetter("__code__"), self.coded), self.codes))
        )

    def put_back(self) -> list[str]:
        """The names of what was replaced."""
        patched = []
        for function, code in zip(self.coded, self.codes, strict=True):
            if function.__code__ is not code:
                function.__code__ = code
                patched.append(function.__name__)
        known = dict(zip(self.names, self.values, strict=True))
        for name, found in list(vars(self.owner).items()):
            if name not in known and self._hides(name, found):
                delattr(self.owner, name)
                patched.append(name)
        for name, value in known.items():
            found = vars(self.owner).get(name)
            if found is value or not self._is_fault(name, value, found):
                continue
            setattr(self.owner, name, value)
            patched.append(name)
        self._note()
        return [f"{self.owner.__name__}.{name}" for name in patched]

    def _hides(self, name: str, added: object) -> bool:
        """Whether a new name stands before one that was found so far."""
        if isinstance(self.owner, type):
            return any(name in vars(parent) for parent in self.owner.__mro__[1:])
        return self.ours and hasattr(builtins, name) and not isinstance(added, ModuleType)

    def _is_fault(self, name: str, before: object, found: object) -> bool:
        if name.startswith("__") and name.endswith("__") and isinstance(self.owner, ModuleType):
            return False  # what the interpreter notes of a module
        # torch's compiler wraps some functions when it is imported, and torch fills in its modules
        return self.ours or (callable(before) and not _of_torch(found))


def _own_names() -> Iterator[Names]:
    for module in [m for name, m in sys.modules.items() if name.startswith(GUARDED)]:
        yield Names(module, ours=True)
        for owner in [v for v in vars(module).values() if isinstance(v, type)]:
            if owner.__module__ == module.__name__:
                yield Names(owner, ours=True)


def _of_torch(function: object) -> bool:
    return f"{getattr(function, '__module__', '')}.".startswith("torch.")


# ---- single settings -----------------------------------------------------------------------------


def _generators() -> Iterator[tuple[Callable[[], Any], Callable[[Any], object]]]:
    yield random.getstate, random.setstate
    yield torch.get_rng_state, torch.set_rng_state
    if torch.cuda.is_initialized():  # a worker on a GPU has allocated before
        yield torch.cuda.get_rng_state, torch.cuda.set_rng_state


def _default_device() -> object:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return getattr(context, "device", "cpu")


def _no_default_device(_: object) -> None:
    """As before any backend; naming the CPU would leave a mode on that every torch call passes."""
    torch.set_default_device(None)


def _flushes_denormals() -> bool:
    return float(torch.tensor(1e-310, dtype=torch.float64) * 1.0) == 0.0


def _pop_to(count: Callable[[], int], pop: Callable[[], object], before: int) -> None:
    """Leave the modes that were entered since; one that was left cannot be entered again."""
    while count() > before:
        pop()


def _timers() -> dict[str, bool]:
    """Whether each is set."""
    return {name: any(signal.getitimer(getattr(signal, name))) for name in TIMERS}


def _stop_timers(before: dict[str, bool]) -> None:
    for name, was_set in before.items():
        if not was_set:
            signal.setitimer(getattr(signal, name), 0.0)


def _handlers() -> dict[str, Any]:
    """None: not one of Python's."""
    return {one.name: signal.getsignal(one) for one in signal.Signals}


def _set_handlers(before: dict[str, Any]) -> None:
    for name, handler in before.items():
        number = signal.Signals[name]
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _our_threads() -> Setting:
    """The cores and priorities of the threads of now, torch's among them. Linux only."""
    ids: list[int] = []
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):
            ids += (int(path.name) for path in THREADS.iterdir())

    def read() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, thread in enumerate(ids):
            with suppress(OSError):  # it has ended
                found[f"cores of thread {number}"] = os.sched_getaffinity(thread)
                found[f"niceness of thread {number}"] = os.getpriority(os.PRIO_PROCESS, thread)
                found[f"scheduling of thread {number}"] = os.sched_getscheduler(thread)
        return found

    def undo(before: dict[str, Any]) -> None:
        for number, thread in enumerate(ids):
            with suppress(OSError, KeyError):  # a higher priority needs the right to it
                os.sched_setaffinity(thread, before[f"cores of thread {number}"])
                os.setpriority(os.PRIO_PROCESS, thread, before[f"niceness of thread {number}"])

    return Setting("the", read, undo)


def _differences(name: str, before: Any, now: Any) -> list[str]:
    if isinstance(before, dict):
        kept = [key for key in before if key in now and now[key] != before[key]]
        return [f"{name} {key} from {_shown(before[key])} to {_shown(now[key])}" for key in kept]
    return [f"{name} from {_shown(before)} to {_shown(now)}"]


def _shown(value: object) -> str:
    return getattr(value, "__qualname__", None) or str(value)
