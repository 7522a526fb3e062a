"""A backend with its call prepared on the very tensors that are judged, weighed and timed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...impls.backend import Backend, Inputs, Weights, make_inputs
from ...impls.layer import make_weights
from ...impls.problem import Problem
from .correctness import leaves


class Tensors(NamedTuple):
    """What all backends of a problem share."""

    inputs: Inputs
    weights: Weights | None


def make_tensors(problem: Problem, device: torch.device, seed: int) -> Tensors:
    weights = make_weights(problem, device, seed) if problem.scope == "layer" else None
    return Tensors(make_inputs(problem, device, seed), weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`targets` are the tensors that gradients are taken of, `grad_output` the gradient that the
    backward pass starts from.

    `setup_facts` are what the backend says of its set-up, and how long that took.
    """

    problem: Problem
    backend: Backend
    call: Callable[[], Tensor]
    targets: list[Tensor]
    grad_output: Tensor | None
    setup_facts: dict[str, Any]

    def setup(self) -> Tensor | None:
        """What must exist before the measured part: the forward pass, where only the backward pass
        is measured.
        """
        return self.call() if self.problem.passes == "backward" else None

    def run(self, ready: Tensor | None) -> object:
        """The measured part and nothing else; `ready` is what `setup` gave."""
        if not self.problem.backward:
            return self.call()
        output = self.call() if ready is None else ready
        return torch.autograd.grad(
            output, self.targets, self.grad_output, retain_graph=ready is not None
        )

    def result(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Output and gradients, for the gate."""
        output = self.call()
        return output, torch.autograd.grad(
            output, self.targets, self.grad_output
        ) if self.problem.backward else ()

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Gradient mode and the backend's own context: entered round a series of calls, never
        timed.
        """
        with torch.set_grad_enabled(self.problem.backward), self.backend.context(self.problem):
            yield


def make_subject(
    problem: Problem, backend: Backend, tensors: Tensors, grad_output: Tensor | None
) -> Subject:
    """The call may have the attributes `facts` and `parameters` of Backend.prepare."""
    start = perf_counter()
    call = backend.prepare(problem, *tensors)
    prepare_ms = (perf_counter() - start) * 1e3
    parameters = getattr(call, "parameters", None)
    return Subject(
        problem=problem,
        backend=backend,
        call=call,
        targets=leaves(*tensors)
        if parameters is None
        else [*leaves(tensors.inputs, None), *parameters],
        grad_output=grad_output,
        setup_facts={"prepare_ms": prepare_ms, "configuration": getattr(call, "facts", None)},
    )
