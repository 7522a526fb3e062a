"""Which configuration is fastest here: the one that a run on such a GPU chose before
(_triton_tuned.py), or else a few calls of each candidate, on the problem's own inputs. Importing
this imports triton.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal

import torch
from torch import Tensor
from triton.errors import TritonError

from ..problem import Problem
from . import launch
from .configs import KERNELS, Config, Kernel, candidates
from .tuned import kind_of, read

# queries and keys that take part: on longer sequences the same tiles only go on for longer
TOKENS = 4096
# up to so many queries and keys there is nothing to choose: the smallest blocks hold them, or
# nearly
SHORT = 128
CALLS = 3  # timed, after one that compiles; the fastest counts
LIMIT = (
    2.0**-5
    # of the distance between results, as a part of their norm: tiles of other sizes differ by 2**-8, a
    # lost tile by far more
)

Configs = tuple[Config, Config, Config]
"""Of the kernels forward, grad_q and grad_kv."""
Source = Literal["table", "timed", "only"]
"""Chosen by an earlier run, by timing several candidates here, or because there is but one."""


Reasons = dict[tuple[Kernel, Config], str]
"""Why a kernel's candidate takes no part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A candidate that took no part, and why."""

    kernel: Kernel
    config: Config
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was chosen: `kernels` are those that the problem needs, `tune_ms` is how long choosing
    took, compilation included.
    """

    kernels: tuple[Kernel, ...]
    configs: Configs
    source: Source
    tune_ms: float
    skipped: tuple[Skipped, ...]

    def facts(self) -> dict[str, Any]:
        """Ready for JSON."""
        chosen = dict(zip(KERNELS, self.configs, strict=True))
        return {
            "configuration": {kernel: asdict(chosen[kernel]) for kernel in self.kernels},
            "configuration_source": self.source,
            "tune_ms": self.tune_ms,
            "skipped": [
                {"kernel": one.kernel, **asdict(one.config), "reason": one.reason}
                for one in self.skipped
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A kernel ready to be tried in any configuration; `results` are a part of what it fills: the
    last entry of the batch.
    """

    kernel: Kernel
    make: Callable[..., launch.Launch]
    results: tuple[Tensor, ...]


def first_candidates(problem: Problem, capability: tuple[int, int]) -> Configs:
    """Without timing anything."""
    forward, grad_q, grad_kv = (_candidates(kernel, problem, capability)[0] for kernel in KERNELS)
    return forward, grad_q, grad_kv


def _candidates(
    kernel: Kernel, problem: Problem, capability: tuple[int, int]
) -> tuple[Config, ...]:
    p = problem
    n_q = p.seq_len - p.empty_rows
    listed = candidates(
        kernel,
        capability=capability,
        item_bytes=p.item_bytes,
        width=max(p.d_k, p.d_v),
        n_q=n_q,
        causal=p.causal,
    )
    return listed[-1:] if max(p.seq_len, p.kv_seq_len) <= SHORT else listed


def tuned(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> Tuning:
    """Compiles and runs candidates on the GPU that holds q; only the forward kernel's, unless
    gradients are asked for.
    """
    start = perf_counter()
    capability = torch.cuda.get_device_capability(q.device)
    known = None if tf32 and problem.dtype == "fp32" else read().get(kind_of(problem, capability))
    chosen = dict(zip(KERNELS, first_candidates(problem, capability), strict=True))
    skipped: Reasons = {}
    sources: set[Source] = set()
    trials = _trials(problem, q, k, v, tf32=tf32)
    with torch.cuda.device(q.device):
        for trial in trials:
            if known and (config := _fastest(trial, [known.configs[trial.kernel]], skipped)):
                sources.add("table")
            else:
                listed = _candidates(trial.kernel, problem, capability)
                config = _fastest(trial, listed, skipped)
                sources.add("only" if len(listed) == 1 else "timed")
            if config is None:
                reasons = "; ".join(
                    f"{config}: {reason}"
                    for (kernel, config), reason in skipped.items()
                    if kernel == trial.kernel
                )
                raise RuntimeError(
                    f"none of the configurations of {trial.kernel} works on this GPU: {reasons}"
                )
            chosen[trial.kernel] = config
    return Tuning(
        kernels=tuple(trial.kernel for trial in trials),
        configs=(chosen["forward"], chosen["grad_q"], chosen["grad_kv"]),
        source="timed" if "timed" in sources else "table" if "table" in sources else "only",
        tune_ms=(perf_counter() - start) * 1e3,
        skipped=tuple(
            Skipped(kernel=kernel, config=config, reason=reason)
            for (kernel, config), reason in skipped.items()
        ),
    )


def _trials(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> list[Trial]:
    """In the order in which the kernels run: each but the first reads what those before have
    filled.
    """
    q, k, v = (x.detach()[:, :, :TOKENS] for x in (q, k, v))
    offset = max(k.shape[2] - q.shape[2], 0) if problem.causal_offset > 0 else 0
    setting = launch.Setting(
        scale=problem.scale, causal=problem.causal, causal_offset=offset, tf32=tf32
    )
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    forward = Trial(
        kernel="forward",
        make=partial(launch.forward, q, k, v, None, o, lse, setting=setting),
        results=(o[-1:],),
    )
    if not problem.backward:
        return [forward]
    delta, dq, dk, dv = (torch.empty_like(x) for x in (lse, q, k, v))
    by_q = partial(launch.grad_q, q, k, v, None, o, o, lse, delta, dq, setting=setting)
    by_kv = partial(launch.grad_kv, q, k, v, None, o, lse, delta, dk, dv, setting=setting)
    return [
        forward,
        Trial(kernel="grad_q", make=by_q, results=(dq[-1:],)),
        Trial(kernel="grad_kv", make=by_kv, results=(dk[-1:], dv[-1:])),
    ]


def _fastest(trial: Trial, configs: Sequence[Config], skipped: Reasons) -> Config | None:
    """None where no configuration works; `skipped` learns why. Those with descriptors must agree
    with the first one that has none.
    """
    times_ms: dict[Config, float] = {}
    wanted: tuple[Tensor, ...] = ()
    for config in configs:
        if config.descriptors:
            for result in trial.results:
                result.fill_(torch.nan)  # or what is never written would look right
        found = _tried(trial, config)
        if not isinstance(found, str) and config.descriptors and not _agree(trial.results, wanted):
            found = "gives another result than the candidates without descriptors"
        if isinstance(found, str):
            skipped[trial.kernel, config] = found
            for result, right in zip(trial.results, wanted, strict=bool(wanted)):
                result.copy_(right)  # the next kernel reads it
            continue
        times_ms[config] = found
        if not wanted and any(other.descriptors for other in configs[1:]):
            wanted = tuple(result.clone() for result in trial.results)
    return min(times_ms, key=times_ms.__getitem__) if times_ms else None


def _tried(trial: Trial, config: Config) -> float | str:
    """Milliseconds, or why there are none: what the compiler, the driver or the GPU has
    against it.
    """
    one = trial.make(config=config)
    if one.config != config:
        return (
            "no descriptor fits these tensors: it wants columns side by side, and address and"
            " strides in multiples of 16 bytes"
        )
    try:
        return _time_ms(one)
    except torch.OutOfMemoryError:
        raise  # a RuntimeError too, but no fault of the candidate
    except (TritonError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _agree(results: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    """With nothing to compare with, they do."""
    norm = partial(torch.linalg.vector_norm, dtype=torch.float32)
    return all(
        bool(norm(result - right) <= LIMIT * norm(right))
        for result, right in zip(results, wanted, strict=bool(wanted))
    )


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
