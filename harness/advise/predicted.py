"""What formulas say of a call's peak bytes, without torch: its import takes seconds."""

import os
from contextlib import suppress
from functools import cache
from math import ceil
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from ...impls import missing
from ...impls.discovery.loading import described
from ...impls.peak_formulas import nearest, sdpa_on_cuda
from ...impls.problem import Problem
from ...reports.advise.asked import Bytes
from ..devices.host import quota

if TYPE_CHECKING:
    import torch

_described, _missing = cache(described), cache(missing)  # asked for every context that is tried


def peak(backend: str, problem: Problem, device: str) -> Bytes:
    """By the backend's own formula, else by its nearest relative's. `device`: its kind."""
    own, place, threads = _described(backend), _place(device), usual_threads()
    if refused := _missing(backend) or own.why_not(problem, place):
        return Bytes(value=None, words=refused)
    found = own.peak_bytes(problem, place, threads)
    if found is not None:
        return Bytes(value=found, words="by the formula")
    if device == "cuda" and backend in ("sdpa", "hf", "hf:sdpa"):
        most = sdpa_on_cuda.most_bytes(backend, problem)
        if most is not None:
            words = "at most what torch's fused kernels need"
            return Bytes(value=most, words=words, at_most=True)
    for near in nearest(backend, problem, threads):
        found = _described(near.backend).peak_bytes(near.problem, place, threads)
        if found is not None:
            return Bytes(value=found + near.more_bytes, words=near.words, at_most=True)
    return Bytes(value=None, words=f"no formula for {backend} on {device}")


def _place(device: str) -> "torch.device":
    """What of a device formulas and refusals read: its type."""
    return cast("torch.device", SimpleNamespace(type=device))


@cache
def usual_threads() -> int:
    """How many threads torch takes in a worker (environment.fix_threads): OMP_NUM_THREADS, else one
    for each core that this process may use, without their second threads; no more than there are.
    """
    import psutil

    limit, cores = quota(), len(os.sched_getaffinity(0))
    allowed = ceil(limit.cores) if limit else psutil.cpu_count(logical=False)
    with suppress(KeyError, ValueError):
        allowed = int(os.environ["OMP_NUM_THREADS"])
    return max(1, min(cores, allowed or cores))
