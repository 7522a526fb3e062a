"""Settings of the whole process that a backend may not leave changed: its neighbours share them.

They are read before any backend is imported and compared after every step of a case. A change is an
error of the case that made it, and is undone.
"""

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter, is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import torch

PACKAGE = __name__.rpartition(".harness.")[0]
GUARDED = tuple(
    f"{PACKAGE}.{part}"
    for part in ("harness", "impls.reference", "impls.layer", "impls.masks", "impls.problem")
)
"""Our modules whose functions decide what is measured and what counts as correct."""
FOREIGN: tuple[ModuleType | type, ...] = (time, torch, torch.Tensor, torch.nn.functional)


CODE = (FunctionType, BuiltinFunctionType, type)


class Setting(NamedTuple):
    """`undo` sets it to a value that `read` gave."""

    name: str
    read: Callable[[], Any]
    undo: Callable[[Any], object]


def _settings() -> list[Setting]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    cuda = torch.backends.cuda
    found = [
        Setting("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
        Setting(
            "torch's matmul precision",
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
        ),
        Setting("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
        Setting("torch's default device", torch.get_default_device, _no_default_device),
        Setting("torch's grad mode", torch.is_grad_enabled, torch._C._set_grad_enabled),
        Setting(
            "deterministic algorithms",
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
        Setting(
            "autocast",
            partial(torch.is_autocast_enabled, "cpu"),
            partial(torch.set_autocast_enabled, "cpu"),
        ),
        Setting("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        Setting("the trace function", sys.gettrace, sys.settrace),
        Setting("the profile function", sys.getprofile, sys.setprofile),
        Setting("flush denormals", _flushes_denormals, torch.set_flush_denormal),
        _attribute("TF32 in matmul", matmul, "allow_tf32"),
        _attribute("TF32 in cuDNN", cudnn, "allow_tf32"),
        _attribute("bf16 reductions", matmul, "allow_bf16_reduced_precision_reduction"),
        _attribute("fp16 reductions", matmul, "allow_fp16_reduced_precision_reduction"),
        _attribute("cuDNN", cudnn, "enabled"),
        _attribute("cuDNN's benchmarking", cudnn, "benchmark"),
    ]
    for kernel in ("flash", "mem_efficient", "math", "cudnn"):
        read = getattr(cuda, f"{kernel}_sdp_enabled")
        found.append(
            Setting(f"SDPA's {kernel} switch", read, getattr(cuda, f"enable_{kernel}_sdp"))
        )
    return found


class ProcessState:
    """What it was like before any backend was loaded."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._values = [setting.read() for setting in self._settings]
        self._own, self._foreign = [*_own_functions()], [*_foreign_functions()]
        # A backend may use the random number generators: they are only put back.
        self._random = (random.getstate(), torch.get_rng_state())

    def undo(self, *, thorough: bool = True) -> str:
        """Put everything back; what was changed, as a reason, or "".

        `thorough`: random number generators and torch's functions too, which takes longer.
        """
        if thorough:
            random.setstate(self._random[0])
            torch.set_rng_state(self._random[1])
        return self._undo_settings() or self._undo_patches(foreign=thorough)

    def _undo_settings(self) -> str:
        changes = []
        for setting, before in zip(self._settings, self._values, strict=True):
            now = setting.read()
            if now != before:
                setting.undo(before)
                changes.append(f"{setting.name} from {_shown(before)} to {_shown(now)}")
        if not changes:
            return ""
        return f"changed {' and '.join(changes)}; settings of the whole process are the run's"

    def _undo_patches(self, *, foreign: bool) -> str:
        patched = []
        for known in self._own + (self._foreign if foreign else []):
            if not known.unchanged():
                patched += known.put_back()
        return f"replaced {', '.join(patched[:3])}: it changes what others run" if patched else ""


class Functions:
    """Functions of a module or class, and their code where it is Python of ours."""

    def __init__(self, owner: Any, functions: dict[str, Any], *, ours: bool) -> None:
        self.owner = owner
        self.names, self.functions = [*functions], [*functions.values()]
        self.coded = [f for f in self.functions if ours and hasattr(f, "__code__")]
        self.codes = [function.__code__ for function in self.coded]
        self.ours = ours

    def unchanged(self) -> bool:
        """In C throughout: it looks at thousands of functions after every step."""
        found = map(vars(self.owner).get, self.names)
        return all(map(is_, found, self.functions)) and all(
            map(is_, map(attrgetter("__code__"), self.coded), self.codes)
        )

    def put_back(self) -> list[str]:
        """The names of what was replaced."""
        patched = []
        for function, code in zip(self.coded, self.codes, strict=True):
            if function.__code__ is not code:
                function.__code__ = code
                patched.append(f"{self.owner.__name__}.{function.__name__}")
        for place, (name, function) in enumerate(zip(self.names, self.functions, strict=True)):
            found = vars(self.owner).get(name)
            if found is function:
                continue
            if not self.ours and _of_torch(found):  # its compiler wraps some when imported
                self.functions[place] = found
                continue
            setattr(self.owner, name, function)
            patched.append(f"{self.owner.__name__}.{name}")
        return patched


def _foreign_functions() -> Iterator[Functions]:
    for owner in FOREIGN:
        found = {name: value for name, value in vars(owner).items() if callable(value)}
        yield Functions(owner, found, ours=False)


def _own_functions() -> Iterator[Functions]:
    for module in [m for name, m in sys.modules.items() if name.startswith(GUARDED)]:
        found = {n: v for n, v in vars(module).items() if isinstance(v, CODE)}
        yield Functions(module, found, ours=True)
        for owner in [v for v in found.values() if isinstance(v, type)]:
            if owner.__module__ == module.__name__:
                methods = {n: v for n, v in vars(owner).items() if isinstance(v, FunctionType)}
                yield Functions(owner, methods, ours=True)


def _of_torch(function: object) -> bool:
    return f"{getattr(function, '__module__', '')}.".startswith("torch.")


def _attribute(what: str, owner: Any, name: str) -> Setting:
    return Setting(what, lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def _no_default_device(_: torch.device) -> None:
    """As before any backend; naming the CPU would leave a mode on that every torch call passes."""
    torch.set_default_device(None)


def _flushes_denormals() -> bool:
    return float(torch.tensor(1e-310, dtype=torch.float64) * 1.0) == 0.0


def _shown(value: object) -> str:
    return getattr(value, "__qualname__", None) or str(value)
