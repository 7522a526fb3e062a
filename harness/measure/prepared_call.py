"""A backend with its call prepared on the very tensors that are checked, measured and timed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...impls.backend import TORCH_DTYPE, Inputs, Weights, leaves
from ...impls.discovery.loading import Backend
from ...impls.layer import make_weights
from ...impls.problem import Problem
from ...impls.shared.inputs import draw, make_inputs
from .graph_capture import overrides_streams


class Tensors(NamedTuple):
    """What all backends of a problem share."""

    inputs: Inputs
    weights: Weights | None


def make_tensors(
    problem: Problem, device: torch.device, seed: int, order: str = "heads"
) -> Tensors:
    """`order`: how inputs of scope "core" lie in memory (impls.input_order)."""
    weights = make_weights(problem, device, seed) if problem.scope != "core" else None
    return Tensors(make_inputs(problem, device, seed, order), weights)


def make_gradient(
    problem: Problem, device: torch.device, seed: int, order: str = "heads"
) -> Tensor | None:
    """A random gradient of the output; None if the problem has no backward pass.

    In the order "model" it lies token by token, as the projection after attention leaves it.
    """
    if not problem.backward:
        return None
    shape, dtype = output_shape(problem), TORCH_DTYPE[problem.dtype]
    axes = (0, 2, 1, 3) if order == "model" and problem.scope == "core" else range(len(shape))
    gradient = torch.empty_permuted(shape, tuple(axes), device=device, dtype=dtype)
    draw_gradient(gradient, seed)
    return gradient


def draw_gradient(gradient: Tensor, seed: int) -> None:
    """Write normal random numbers into one that `make_gradient` has made."""
    draw(gradient, "gradient", seed)


def output_shape(problem: Problem) -> torch.Size:
    p = problem
    layer, core = (p.batch, p.seq_len, p.d_model), (p.batch, p.heads, p.seq_len, p.d_v)
    return torch.Size(core if p.scope == "core" else layer)


def fresh_leaves(tensors: Tensors, dtype: torch.dtype | None = None) -> Tensors:
    """The same memory, or copies of another dtype, as leaves that no graph of autograd has ended
    in.
    """
    fresh = {
        id(leaf): leaf.detach().to(dtype or leaf.dtype).requires_grad_(leaf.requires_grad)
        for leaf in leaves(*tensors)
    }
    return deepcopy(tensors, fresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    """`tensors`: what it was prepared on. `targets`: the tensors that gradients are taken of.
    `grad_output`: of the backward pass.

    `setup_facts`: what the backend reports of its set-up, and how long it took.
    """

    problem: Problem
    backend: Backend
    tensors: Tensors
    call: Callable[[], Tensor]
    targets: list[Tensor]
    grad_output: Tensor | None
    setup_facts: dict[str, Any]

    def setup(self) -> Tensor | None:
        """What the measured part needs: the forward pass, if only the backward pass is measured."""
        return self.call() if self.problem.passes == "backward" else None

    def run(self, ready: Tensor | None) -> object:
        """The measured part and nothing else; `ready` comes from `setup`."""
        if not self.problem.backward:
            return self.call()
        output = self.call() if ready is None else ready
        return torch.autograd.grad(
            output, self.targets, self.grad_output, retain_graph=ready is not None
        )

    def anew(self) -> Callable[[], object]:
        """A call of the measured part, set up now."""
        return partial(self.run, self.setup())

    def for_graph(self) -> Callable[[], object]:
        """As `anew`, all of it on the current stream, to be captured as a CUDA graph.

        Where torch cannot move leaves to the captured stream, a backward pass needs leaves of its
        own, and the backend prepares its call on them.
        """
        if self.problem.passes != "backward" or overrides_streams():
            return self.anew()
        leaves_of_its_own = fresh_leaves(self.tensors)
        return prepare_call(self.problem, self.backend, leaves_of_its_own, self.grad_output).anew()

    def result(
        self, before_backward: Callable[[], object] = lambda: None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Output and gradients, for the correctness check."""
        output = self.call()
        if not self.problem.backward:
            return output, ()
        before_backward()
        return output, torch.autograd.grad(output, self.targets, self.grad_output)

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Gradient mode and the backend's context: around a series of calls, never timed."""
        with torch.set_grad_enabled(self.problem.backward), self.backend.context(self.problem):
            yield


def prepare_call(
    problem: Problem, backend: Backend, tensors: Tensors, grad_output: Tensor | None
) -> PreparedCall:
    """The call may have the attributes `facts` and `parameters` of Backend.prepare.

    Raises ValueError for parameters in place of the layer's weights, whose gradients are checked.
    """
    start = perf_counter()
    with compile_time() as compiling:
        call = backend.prepare(problem, *tensors)
    prepare_ms = (perf_counter() - start) * 1e3
    own = getattr(call, "parameters", None)
    if own is not None and backend.exactness != "other":
        raise ValueError(
            "the call has `parameters`; wanted none where the gradients of the layer's own weights"
            ' are checked; they are for a backend with EXACTNESS = "other"'
        )
    return PreparedCall(
        problem=problem,
        backend=backend,
        tensors=tensors,
        call=call,
        targets=leaves(*tensors) if own is None else [*leaves(tensors.inputs, None), *own],
        grad_output=grad_output,
        setup_facts={
            "prepare_ms": prepare_ms,
            "compile_ms": compiling.ms,
            "configuration": getattr(call, "facts", None),
        },
    )


# ---- how long compilers took while a case was set up ---------------------------------------------
# By their own counts. torch's compiler counts whole frames and their backward passes, Inductor and
# what that calls in it (torch._dynamo.utils.calculate_time_spent). Triton tells a listener of each
# kernel that it compiled. Neither is imported here: what is not imported has compiled nothing.

US_PER_MS = 1e3


class CompileTime:
    """`ms` in all: None if nothing was compiled."""

    ms: float | None = None

    def add(self, ms: float | None) -> None:
        if ms is not None:
            self.ms = (self.ms or 0.0) + ms

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add how long the work inside takes by the host's clock, also if it fails."""
        begun_s = perf_counter()
        try:
            yield
        finally:
            self.add((perf_counter() - begun_s) * 1e3)


@contextmanager
def compile_time() -> Iterator[CompileTime]:
    """Of what is compiled inside, complete after it."""
    found, triton = CompileTime(), CompileTime()
    before_ms = _torch_ms()
    with _listening(triton):
        yield found
    if (ms := _torch_ms() - before_ms) > 0:
        found.add(ms)  # kernels that it had Triton compile are in it
    else:
        found.add(triton.ms)


def _torch_ms() -> float:
    utils = sys.modules.get("torch._dynamo.utils")
    return utils.calculate_time_spent()["total_wall_time"] * 1e3 if utils else 0.0


@contextmanager
def _listening(found: CompileTime) -> Iterator[None]:
    """To Triton, from version 3.4 on; whoever listened before still hears."""
    knobs = sys.modules.get("triton.knobs")
    before = getattr(getattr(knobs, "compilation", None), "listener", None)

    def hear(**told: Any) -> None:
        if not told["cache_hit"]:
            found.add(told["times"].total / US_PER_MS)
        if before is not None:
            before(**told)

    if knobs is None:
        yield
        return
    knobs.compilation.listener = hear
    try:
        yield
    finally:
        knobs.compilation.listener = before
