"""The kernels on a problem's own inputs, to be launched in any configuration. Imports triton."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..problem import Problem
from . import launch
from .configs import BANDS, Kernel

MAX_TOKENS = 4096  # queries and keys that are timed: longer sequences only repeat the same tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A kernel that can be launched in any configuration.

    `results` are a part of what it fills: the last entry of the batch.
    """

    kernel: Kernel
    make: Callable[..., launch.Launch]
    results: tuple[Tensor, ...]


def trials(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> list[Trial]:
    """In the order in which the kernels run: each reads what the ones before have filled."""
    q, k, v = (x.detach() for x in (q, k, v))
    packed, paged = launch.Packed.of(problem.lengths, q.device), None
    n_kv = problem.kv_seq_len
    if not packed:
        q, n_kv = q[:, :, :MAX_TOKENS], min(n_kv, MAX_TOKENS)
    if problem.page:
        paged = launch.Paged(_in_order(problem, n_kv, q.device), n_kv)
    else:
        k, v = k[:, :, :n_kv], v[:, :, :n_kv]
    offset = max(n_kv - q.shape[2], 0) if problem.causal_offset > 0 else 0
    setting = launch.Setting(
        scale=problem.scale,
        causal=problem.causal,
        causal_offset=offset,
        tf32=tf32,
        softcap=problem.softcap,
        band=problem.mask if problem.mask in BANDS else "",
        window=problem.window,
    )
    sinks = q.new_zeros(q.shape[1]) if problem.sinks else None
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    how: dict[str, Any] = {"setting": setting, "packed": packed}
    forward = partial(launch.forward, q, k, v, None, o, lse, sinks=sinks, paged=paged, **how)
    found = [Trial(kernel="forward", make=forward, results=(o[-1:], lse[-1:]))]
    if not problem.backward:
        return found
    delta, dq, dk, dv = (torch.empty_like(x) for x in (lse, q, k, v))
    terms = torch.empty_like(lse) if problem.sinks else None
    grad_q = partial(
        launch.grad_q, q, k, v, None, o, o, lse, delta, dq, sinks=sinks, sink_terms=terms, **how
    )
    grad_kv = partial(launch.grad_kv, q, k, v, None, o, lse, delta, dk, dv, **how)
    return [
        *found,
        Trial(kernel="grad_q", make=grad_q, results=(dq[-1:], delta[-1:])),
        Trial(kernel="grad_kv", make=grad_kv, results=(dk[-1:], dv[-1:])),
    ]


def _in_order(problem: Problem, n_kv: int, device: torch.device) -> Tensor:
    """A table of pages that lie in order: kernels do the same whatever pages it names."""
    pages = -(-n_kv // problem.page)
    numbers = torch.arange(problem.batch * pages, dtype=torch.int32, device=device)
    return numbers.view(problem.batch, pages)
