"""What a backend's mask costs by itself, in time and memory."""

from time import perf_counter

import torch

from ...impls.backend import Backend
from ...impls.problem import Problem
from .clock import Clock
from .peak_memory import peak


def mask_cost(
    problem: Problem, backend: Backend, device: torch.device, clock: Clock
) -> dict[str, float | None]:
    """Fields of the row; none if the backend builds no mask for this problem.

    The time is that of the second one: the first imports what it needs.
    """
    with torch.no_grad():
        if backend.build_mask(problem, device) is None:
            return {}
        clock.finish()
        start = perf_counter()
        mask = backend.build_mask(problem, device)
        clock.finish()
        spent_ms = (perf_counter() - start) * 1e3
        del mask
        found = peak(lambda: None, lambda _: backend.build_mask(problem, device), device)
    return {"mask_build_ms": spent_ms, "mask_build_peak_bytes": found.peak_bytes}
