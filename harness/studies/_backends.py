"""Exact backends, asked for attention on a study's own tensors, and the memory of a call."""

from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor

from ...impls import is_ours, load, missing, names
from ...impls.backend import TORCH_DTYPE, Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Problem
from ..measure.peak_memory import peak


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
