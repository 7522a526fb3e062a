"""torch.compile for backends: what it and Triton need, and compilation before anything is timed."""

import os
import shutil
import sysconfig
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from ..problem import Device, Problem

if TYPE_CHECKING:
    import torch

    from ..backend import Call, Inputs, Weights

F = TypeVar("F", bound=Callable[..., Any])

C_COMPILERS = ("gcc", "clang")
OLDEST = (7, 0)  # compute capability that torch's compiler generates Triton code for


def missing_for_compile(device: "torch.device") -> str | None:
    """What torch.compile lacks here, as text; None if nothing."""
    if device.type == "cuda" and find_spec("triton"):
        import torch

        major, minor = torch.cuda.get_device_capability(device)
        if (major, minor) < OLDEST:
            return (
                "torch.compile needs a GPU of compute capability 7.0 or newer; this one has"
                f" {major}.{minor}"
            )
    return missing_to_compile(device)


def missing_to_compile(device: Device) -> str | None:
    """The same, whatever the GPU's age; imports nothing, and reads the device's type alone."""
    if device.type == "cuda":
        if find_spec("triton") is None:
            return "torch.compile needs triton, which is not installed: pip install triton"
        return missing_for_triton()
    compiler = os.environ.get("CXX", "g++")  # as in torch/_inductor/config.py, cpp.cxx
    if shutil.which(compiler) is None:
        return (
            f"torch.compile needs a C++ compiler, and there is no {compiler}: apt-get install g++,"
            " or name one in CXX"
        )
    return _missing_headers("torch.compile")


def missing_for_triton() -> str | None:
    """What Triton lacks to build its launchers, in C, when a kernel first runs, as text; None if
    nothing (triton/runtime/build.py). Images that only run programs often have no compiler.
    """
    named = os.environ.get("CC")
    if not any(map(shutil.which, [named] if named else C_COMPILERS)):
        return (
            f"Triton needs a C compiler, and there is no {named or ' or '.join(C_COMPILERS)}:"
            " apt-get install gcc libc6-dev, or name one in CC"
        )
    return _missing_headers("Triton")


def _missing_headers(who: str) -> str | None:
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        return (
            f"{who} needs Python's C headers, and there is no Python.h in {headers}:"
            " apt-get install python3-dev"
        )
    return None


def compiled(function: F) -> F:
    """Compiled for these shapes only, as one graph or not at all: no silent fallback.

    Torch keeps up to 8 compiled versions with a function's code object and searches them at each
    call. Functions made by the same `def` share that code object. A copy of the code shares
    nothing with shapes measured before.
    """
    import torch

    f: Any = function
    alone = FunctionType(
        f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    alone.__kwdefaults__ = f.__kwdefaults__
    alone.__dict__.update(f.__dict__)
    return torch.compile(alone, fullgraph=True, dynamic=False)  # type: ignore[return-value]


def keep_buffers(problem: Problem) -> AbstractContextManager[object]:
    """Stop a graph that runs backward repeatedly from donating its buffers; for `context`."""
    import torch._functorch.config

    backward_only = problem.passes == "backward"
    return torch._functorch.config.patch(donated_buffer=False) if backward_only else nullcontext()


def compile_now(
    problem: Problem, inputs: "Inputs", weights: "Weights | None", call: "Call"
) -> "Call":
    """Run `call` once, forward and backward, so that nothing is left to compile; return it."""
    import torch._inductor.config

    from ..backend import leaves

    with (
        # no pool of compiler processes that would keep running beside the timed calls
        torch._inductor.config.patch(compile_threads=1),
        keep_buffers(problem),
        # as when it is timed: another grad mode would compile again
        torch.set_grad_enabled(problem.backward),
    ):
        output = call()
        if problem.backward:
            gradient = torch.ones_like(output, memory_format=torch.contiguous_format)
            torch.autograd.grad(
                output,
                leaves(inputs, weights),
                gradient,
                retain_graph=problem.passes == "backward",
            )
    return call
