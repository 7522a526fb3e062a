"""Which configuration is fastest here: a few calls of each candidate, on the problem's own inputs. Importing this imports triton."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from triton.runtime.errors import OutOfResources

from . import _triton_launch as launch
from ._triton_configs import KERNELS, Config, Kernel, candidates
from .problem import Problem

TOKENS = 4096  # queries and keys that take part: on longer sequences the same tiles only go on for longer
SHORT = 128  # up to so many queries and keys there is nothing to choose: the smallest blocks hold them, or nearly
CALLS = 3  # timed, after one that compiles; the fastest counts

Configs = tuple[Config, Config, Config]
"""Of the kernels forward, grad_q and grad_kv."""


def first_candidates(problem: Problem, capability: tuple[int, int]) -> Configs:
    """Without timing anything."""
    forward, grad_q, grad_kv = (_candidates(kernel, problem, capability)[0] for kernel in KERNELS)
    return forward, grad_q, grad_kv


def _candidates(kernel: Kernel, problem: Problem, capability: tuple[int, int]) -> tuple[Config, ...]:
    p = problem
    n_q = p.seq_len - p.empty_rows
    listed = candidates(kernel, capability=capability, item_bytes=p.item_bytes, width=max(p.d_k, p.d_v), n_q=n_q)
    return listed[-1:] if max(p.seq_len, p.kv_seq_len) <= SHORT else listed


def tuned(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> Configs:
    """Compiles and times every candidate on the GPU that holds q; only the forward kernel's, unless gradients are asked for."""
    capability = torch.cuda.get_device_capability(q.device)
    q, k, v = (x.detach()[:, :, :TOKENS] for x in (q, k, v))
    offset = max(k.shape[2] - q.shape[2], 0) if problem.causal_offset > 0 else 0
    setting = launch.Setting(scale=problem.scale, causal=problem.causal, causal_offset=offset, tf32=tf32)
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    fastest = partial(_fastest, device=q.device)
    forward = fastest(_candidates("forward", problem, capability), partial(launch.forward, q, k, v, None, o, lse, setting=setting))
    if not problem.backward:
        return forward, *first_candidates(problem, capability)[1:]
    delta, dq, dk, dv = (torch.empty_like(x) for x in (lse, q, k, v))
    by_q = partial(launch.grad_q, q, k, v, None, o, o, lse, delta, dq, setting=setting)
    by_kv = partial(launch.grad_kv, q, k, v, None, o, lse, delta, dk, dv, setting=setting)
    return (
        forward,
        fastest(_candidates("grad_q", problem, capability), by_q),
        fastest(_candidates("grad_kv", problem, capability), by_kv),
    )


def _fastest(configs: Sequence[Config], make: Callable[..., launch.Launch], *, device: torch.device) -> Config:
    """RuntimeError where none fits into this GPU's shared memory."""
    times_ms: dict[Config, float] = {}
    with torch.cuda.device(device):
        for config in configs:
            try:
                times_ms[config] = _time_ms(make(config=config))
            except OutOfResources:
                continue
    if not times_ms:
        raise RuntimeError(f"none of {list(configs)} fits into this GPU's shared memory")
    return min(times_ms, key=times_ms.__getitem__)


def _time_ms(one: launch.Launch) -> float:
    one.start()
    times: list[float] = []
    for _ in range(CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        one.start()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)
