"""Exact backends, asked for attention on a study's own tensors."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ...impls import is_ours, load, missing, names
from ...impls.backend import Inputs
from ...impls.discovery.loading import Backend
from ...impls.problem import Dtype, Problem

UNIT_ROUNDOFF: dict[Dtype, float] = {"fp32": 2.0**-24, "bf16": 2.0**-8, "fp16": 2.0**-11}
"""2**-p for p binary digits (Higham 2002, Accuracy and Stability, section 2.1)."""


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


@torch.no_grad()
def attend(backend: Backend, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Of q [batch, heads, n_q, d_k], k and v [batch, heads, n_kv, d_k or d_v]."""
    with backend.context(problem):
        return backend.prepare(problem, Inputs(q, k, v), None)()


def weights(backend: Backend, problem: Problem, q: Tensor, k: Tensor) -> Tensor:
    """[batch, heads, n_q, n_kv] of a problem with d_v = n_kv: what values of unit vectors give.

    So they are those that a backend uses, also if it never writes them.
    """
    unit = torch.eye(problem.kv_seq_len, dtype=k.dtype, device=k.device)
    return attend(backend, problem, q, k, unit.expand(*k.shape[:2], -1, -1).contiguous())
