"""Choose the fastest configuration: from the table of earlier runs (tuned.py), or else by timing a
few calls of each candidate on the problem's own inputs. Imports triton.
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

MAX_TOKENS = 4096  # queries and keys that are timed: longer sequences only repeat the same tiles
SHORT = 128  # up to so many queries and keys the smallest blocks (nearly) hold them: no choice
TIMED_CALLS = 3  # after one that compiles; the fastest counts
# Distance between results, relative to their norm: other tile sizes differ by 2**-8, a lost tile by
# far more.
LIMIT = 2.0**-5

Configs = tuple[Config, Config, Config]
"""Those of the kernels forward, grad_q and grad_kv."""
Source = Literal["table", "timed", "only"]
"""Chosen by an earlier run, by timing candidates here, or the only candidate."""
Reasons = dict[tuple[Kernel, Config], str]
"""Why a kernel's candidate was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The choice, for the `kernels` that the problem needs; `tune_ms` includes compilation."""

    kernels: tuple[Kernel, ...]
    configs: Configs
    source: Source
    tune_ms: float
    skipped: Reasons

    def facts(self) -> dict[str, Any]:
        """Ready for JSON."""
        chosen = dict(zip(KERNELS, self.configs, strict=True))
        return {
            "configuration": {kernel: asdict(chosen[kernel]) for kernel in self.kernels},
            "configuration_source": self.source,
            "tune_ms": self.tune_ms,
            "skipped": [
                {"kernel": kernel, **asdict(config), "reason": reason}
                for (kernel, config), reason in self.skipped.items()
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A kernel that can be launched in any configuration.

    `results` are a part of what it fills: the last entry of the batch.
    """

    kernel: Kernel
    make: Callable[..., launch.Launch]
    results: tuple[Tensor, ...]


def _candidates(
    kernel: Kernel, problem: Problem, capability: tuple[int, int]
) -> tuple[Config, ...]:
    p = problem
    listed = candidates(
        kernel,
        capability=capability,
        item_bytes=p.item_bytes,
        width=max(p.d_k, p.d_v),
        n_q=p.seq_len - p.empty_rows,
        causal=p.causal,
    )
    return listed[-1:] if max(p.seq_len, p.kv_seq_len) <= SHORT else listed


def tuned(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> Tuning:
    """Compiles and runs candidates on q's GPU; only the forward kernel's without gradients."""
    start = perf_counter()
    capability = torch.cuda.get_device_capability(q.device)
    known = None if tf32 and problem.dtype == "fp32" else read().get(kind_of(problem, capability))
    chosen = {kernel: _candidates(kernel, problem, capability)[0] for kernel in KERNELS}
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
        skipped=skipped,
    )


def _trials(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> list[Trial]:
    """In the order in which the kernels run: each reads what the ones before have filled."""
    q, k, v = (x.detach()[:, :, :MAX_TOKENS] for x in (q, k, v))
    offset = max(k.shape[2] - q.shape[2], 0) if problem.causal_offset > 0 else 0
    setting = launch.Setting(
        scale=problem.scale, causal=problem.causal, causal_offset=offset, tf32=tf32
    )
    batch, heads, n_q, _ = q.shape
    o = torch.empty(batch, n_q, heads, v.shape[3], dtype=q.dtype, device=q.device).transpose(1, 2)
    lse = torch.empty(batch, heads, n_q, dtype=torch.float32, device=q.device)
    forward = partial(launch.forward, q, k, v, None, o, lse, setting=setting)
    trials = [Trial(kernel="forward", make=forward, results=(o[-1:],))]
    if not problem.backward:
        return trials
    delta, dq, dk, dv = (torch.empty_like(x) for x in (lse, q, k, v))
    grad_q = partial(launch.grad_q, q, k, v, None, o, o, lse, delta, dq, setting=setting)
    grad_kv = partial(launch.grad_kv, q, k, v, None, o, lse, delta, dk, dv, setting=setting)
    return [
        *trials,
        Trial(kernel="grad_q", make=grad_q, results=(dq[-1:],)),
        Trial(kernel="grad_kv", make=grad_kv, results=(dk[-1:], dv[-1:])),
    ]


def _fastest(trial: Trial, configs: Sequence[Config], skipped: Reasons) -> Config | None:
    """None if no configuration works; adds reasons to `skipped`.

    The results of configurations with descriptors must agree with those of the first one without.
    """
    times_ms: dict[Config, float] = {}
    expected: tuple[Tensor, ...] = ()
    first = next((one for one in configs if not one.descriptors), None)
    configs = sorted(configs, key=lambda one: one != first)  # the others are compared with it
    for config in configs:
        if config.descriptors:
            for result in trial.results:
                result.fill_(torch.nan)  # or an element that is never written would look right
        found = _tried(trial, config)
        if (
            not isinstance(found, str)
            and config.descriptors
            and not _agree(trial.results, expected)
        ):
            found = "gives another result than the candidates without descriptors"
        if isinstance(found, str):
            skipped[trial.kernel, config] = found
            for result, right in zip(trial.results, expected, strict=bool(expected)):
                result.copy_(right)  # the next kernel reads it
            continue
        times_ms[config] = found
        if not expected and any(other.descriptors for other in configs[1:]):
            expected = tuple(result.clone() for result in trial.results)
    return min(times_ms, key=times_ms.__getitem__) if times_ms else None


def _tried(trial: Trial, config: Config) -> float | str:
    """Milliseconds, or the error of the compiler, the driver or the GPU."""
    made = trial.make(config=config)
    if made.config != config:
        return (
            "no descriptor fits these tensors: it needs contiguous columns, and an address and"
            " strides in multiples of 16 bytes"
        )
    try:
        return _time_ms(made)
    except torch.OutOfMemoryError:
        raise  # also a RuntimeError, but not the candidate's fault
    except (TritonError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _agree(results: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """True if nothing is expected."""
    norm = partial(torch.linalg.vector_norm, dtype=torch.float32)
    return all(
        bool(norm(result - right) <= LIMIT * norm(right))
        for result, right in zip(results, expected, strict=bool(expected))
    )


def _time_ms(made: launch.Launch) -> float:
    made.start()
    times: list[float] = []
    for _ in range(TIMED_CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        made.start()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)
