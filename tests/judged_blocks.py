"""One call of a backend on new values of its inputs, and what the judge says of it."""

from collections.abc import Callable

import torch
from torch import Tensor

from attnbench import impls
from attnbench.harness.measure.error_limits import CheckResult
from attnbench.harness.measure.judge import Judge, Seeds, places, taken, write_gradient
from attnbench.harness.measure.prepared_call import make_gradient, make_tensors, prepare_call
from attnbench.impls.discovery.loading import Backend
from attnbench.impls.problem import Problem
from attnbench.impls.shared.inputs import draw_inputs

CPU = torch.device("cpu")
SEEDS = Seeds(values=2, first=1, places=3)


def judged(
    problem: Problem,
    backend: str | Backend = "fused",
    *,
    seeds: Seeds = SEEDS,
    judge: Judge | None = None,
    exactness: str = "exact",
    change: Callable[[list[Tensor]], object] = lambda results: None,
) -> CheckResult:
    """`change`: of the output or the gradients, in place, before numbers are taken."""
    loaded = impls.load(backend) if isinstance(backend, str) else backend
    order = "model" if loaded.name == "hf" else "heads"
    tensors = make_tensors(problem, CPU, seeds.first, order)
    gradient = make_gradient(problem, CPU, seeds.first, order)
    prepared = prepare_call(problem, loaded, tensors, gradient)
    draw_inputs(problem, tensors.inputs, seeds.values)
    if gradient is not None:
        write_gradient(gradient, problem, seeds.places)
    with prepared.in_force():
        found = prepared.run(prepared.setup())
    results = [found] if isinstance(found, Tensor) else list(found)  # type: ignore[call-overload]
    results = [result.detach().clone() for result in results]
    change(results)
    numbers = taken(problem, results, places(problem, seeds.places))
    return (judge or Judge()).judged(problem, seeds, numbers, exactness)
