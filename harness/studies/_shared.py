"""What studies share: exact backends, asked for attention on a study's own tensors, the memory of a
call, and fields of findings on many random cases.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from ...impls import is_ours, load, missing, names
from ...impls.backend import TORCH_DTYPE, Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Dtype, Problem
from ..measure.peak_memory import peak
from ..stats.intervals import mean_interval

ROUNDINGS = 8
"""Errors that count as rounding, in units of roundoff: scores of inputs of size 1 are about 1, and
a weight is off by as much as its score and its sum are."""


def exact_backends(problem: Problem, device: torch.device) -> Iterator[Backend]:
    """Ours that compute the problem here, but for those that would compile for it.

    A user's may raise or never return, which would end the study of all others.
    """
    for name in filter(is_ours, names()):
        backend = None if missing(name) else load(name)
        if backend is None or backend.exactness != "exact" or backend.compiles:
            continue
        if not backend.why_not(problem, device):
            yield backend


def normal(of: Problem, device: torch.device, generator: Generator) -> Inputs:
    """Random q [batch, heads, n_q, d_k], k [batch, heads, n_kv, d_k] and v [batch, heads, n_kv,
    d_v], drawn on the CPU.
    """
    shapes = ((of.seq_len, of.d_k), (of.kv_seq_len, of.d_k), (of.kv_seq_len, of.d_v))
    drawn = (torch.randn(of.batch, of.heads, *shape, generator=generator) for shape in shapes)
    q, k, v = (one.to(device, TORCH_DTYPE[of.dtype]) for one in drawn)
    return Inputs(q, k, v)


@torch.no_grad()
def attend(backend: Backend, problem: Problem, inputs: Inputs) -> Tensor:
    with backend.context(problem):
        return backend.prepare(problem, inputs, None)()


def weights(backend: Backend, problem: Problem, q: Tensor, k: Tensor) -> Tensor:
    """[batch, heads, n_q, n_kv] of a problem with d_v = n_kv: what values of unit vectors give.

    So they are those that a backend uses, also if it never writes them.
    """
    unit = torch.eye(problem.kv_seq_len, dtype=k.dtype, device=k.device)
    values = unit.expand(*k.shape[:2], -1, -1).contiguous()
    return attend(backend, problem, Inputs(q, k, values))


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """As asked for; what the allocator made of it where it does not count that."""
    found = peak(lambda: None, lambda _: call(), device)
    return found.allocated_peak_bytes if found.peak_bytes is None else found.peak_bytes


# ---- fields of findings --------------------------------------------------------------------------


def mean_fields(name: str, values: Iterable[float]) -> dict[str, float]:
    """The mean over repeats, which share nothing, with its interval at 95 %: `name`, `name_low` and
    `name_high`.
    """
    found = mean_interval([*map(float, values)])
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def held_fields(errors: Sequence[float], tolerance: float) -> dict[str, Any]:
    """Whether a statement holds, by its error in each case: 0 where it holds exactly, NaN where it
    cannot be tried.
    """
    worst = max(errors)
    return {
        "holds": worst <= tolerance,
        "holding_ratio": sum(error <= tolerance for error in errors) / len(errors),
        "worst_error_ratio": worst if worst == worst else None,
        "case_count": len(errors),
        "tolerance_ratio": tolerance,
    }


def rounding(dtype: Dtype) -> float:
    """ROUNDINGS times 2**-p for p binary digits (Higham 2002, Accuracy and Stability, section 2.1).

    torch's `eps` is the distance of 1 from the next number, twice as much.
    """
    return ROUNDINGS * torch.finfo(TORCH_DTYPE[dtype]).eps / 2
