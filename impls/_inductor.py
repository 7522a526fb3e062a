"""torch.compile for backends: what it needs on this machine, and calls that are compiled before
they are timed.
"""

import os
import shutil
import sysconfig
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import torch

from .backend import Call, Inputs, Weights
from .problem import Problem

F = TypeVar("F", bound=Callable[..., Any])

OLDEST = (7, 0)  # compute capability that torch's compiler makes Triton code for


def lacking(device: torch.device) -> str | None:
    """What torch.compile misses here, in words; None when it has all. Looks only, imports
    nothing.
    """
    if device.type == "cuda":
        if find_spec("triton") is None:
            return "torch.compile needs triton, which is not installed: pip install triton"
        capability = torch.cuda.get_device_capability(device)
        if capability < OLDEST:
            return (
                "torch.compile needs a GPU of compute capability 7.0 or newer; this one has"
                f" {capability[0]}.{capability[1]}"
            )
        return None
    compiler = os.environ.get(
        "CXX", "g++"
    )  # as torch chooses it (torch/_inductor/config.py, cpp.cxx)
    if shutil.which(compiler) is None:
        return (
            f"torch.compile needs a C++ compiler, and there is no {compiler}: apt-get install g++,"
            " or name one in CXX"
        )
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        return (
            f"torch.compile needs Python's C headers, and there is no Python.h in {headers}:"
            " apt-get install python3-dev"
        )
    return None


def compiled(function: F) -> F:
    """Compiled for exactly these shapes, into one graph or not at all; so it cannot fall back to
    something else in silence.

    Torch keeps what it compiled with a function's code, up to 8 times, and looks through all of it
    at each call; a new function made by the same `def` shares that. A copy of the code shares
    nothing, with whatever other shapes were measured before.
    """
    f: Any = function
    alone = FunctionType(
        f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__
    )
    alone.__kwdefaults__ = f.__kwdefaults__
    return torch.compile(alone, fullgraph=True, dynamic=False)  # type: ignore[return-value]


def keeping_buffers(problem: Problem) -> AbstractContextManager[object]:
    """While the call runs: a graph that is kept, to go backward again and again, must not give its
    buffers away.
    """
    import torch._functorch.config

    return (
        torch._functorch.config.patch(donated_buffer=False)
        if problem.passes == "backward"
        else nullcontext()
    )


def ahead(problem: Problem, inputs: Inputs, weights: Weights | None, call: Call) -> Call:
    """The same call, after all that torch compiles when it is first made, forward and backward, has
    been compiled.
    """
    import torch._inductor.config

    tensors = (*inputs, *(weights.tensors() if weights else ()))
    with (
        torch._inductor.config.patch(
            compile_threads=1
        ),  # no pool of processes that would stay, and run beside what is timed
        keeping_buffers(problem),
        torch.set_grad_enabled(
            problem.backward
        ),  # as when it is timed: another mode would be compiled for again
    ):
        output = call()
        if problem.backward:
            leaves = list({id(tensor): tensor for tensor in tensors}.values())
            gradient = torch.ones_like(output, memory_format=torch.contiguous_format)
            torch.autograd.grad(output, leaves, gradient, retain_graph=problem.passes == "backward")
    return call
