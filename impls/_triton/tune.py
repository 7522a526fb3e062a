"""Choose the fastest configuration: from the table of earlier runs (tuned.py), or else by timing
launches of each candidate on the problem's own inputs (timing.py). Imports triton.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from math import inf
from time import perf_counter
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from triton.errors import TritonError

from ..problem import Problem
from . import launch
from .configs import KERNELS, Config, Kernel, candidates, why_not_gluon
from .nvidia_tools import Unreadable, serialized
from .safe_code import why_unsafe
from .timing import Timed, by_turns
from .tuned import Choice, kind_of, read

MAX_TOKENS = 4096  # queries and keys that are timed: longer sequences only repeat the same tiles
SHORT = 128  # up to so many queries and keys the smallest blocks (nearly) hold them: no choice
# Distance between results, relative to their norm: other tile sizes differ by 2**-8, a lost tile by
# far more.
LIMIT = 2.0**-5

SERIALIZED = "its matrix products run one at a time: the compiler put a wait after each"

Configs = tuple[Config, Config, Config]
"""Those of the kernels forward, grad_q and grad_kv."""
Source = Literal["table", "timed", "only"]
"""Chosen by an earlier run, by timing candidates here, or the only candidate."""


class Notes:
    """What was found of each candidate: why it was `skipped`, or its times; and why the machine
    code of some could not be read for the answer whether it is serialized.
    """

    def __init__(self) -> None:
        self.skipped: dict[tuple[Kernel, Config], str] = {}
        self.times: dict[tuple[Kernel, Config], Timed] = {}
        self.unread = ""


class Tuning(NamedTuple):
    """The choice, and the facts of it for a row: ready for JSON."""

    configs: Configs
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A kernel that can be launched in any configuration.

    `results` are a part of what it fills: the last entry of the batch.
    """

    kernel: Kernel
    make: Callable[..., launch.Launch]
    results: tuple[Tensor, ...]


def _shape(problem: Problem, capability: tuple[int, int]) -> dict[str, Any]:
    """What candidates depend on."""
    p = problem
    return {
        "capability": capability,
        "item_bytes": p.item_bytes,
        "width": max(p.d_k, p.d_v),
        "n_q": p.seq_len - p.empty_rows,
        "masked": p.mask == "padding",
    }


def _is_short(problem: Problem) -> bool:
    return max(problem.seq_len, problem.kv_seq_len) <= SHORT


def _candidates(
    kernel: Kernel, problem: Problem, capability: tuple[int, int]
) -> tuple[Config, ...]:
    listed = candidates(kernel, causal=problem.causal, **_shape(problem, capability))
    return listed[-1:] if _is_short(problem) else listed


@cache
def choices() -> dict[tuple[Problem, torch.device, bool], Tuning]:
    """Those of this process: a case is checked, measured and timed with the same kernels."""
    return {}


def tuned(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> Tuning:
    """The choice for a problem on q's GPU, made once."""
    key = (problem, q.device, tf32)
    if key not in choices():
        choices()[key] = _tuned(problem, q, k, v, tf32=tf32)
    return choices()[key]


def _tuned(problem: Problem, q: Tensor, k: Tensor, v: Tensor, *, tf32: bool) -> Tuning:
    """Compiles and runs candidates on q's GPU; only the forward kernel's without gradients."""
    start = perf_counter()
    capability = torch.cuda.get_device_capability(q.device)
    known = None if tf32 and problem.dtype == "fp32" else read().get(kind_of(problem, capability))
    chosen = {kernel: _candidates(kernel, problem, capability)[0] for kernel in KERNELS}
    notes = Notes()
    sources: set[Source] = set()
    trials = _trials(problem, q, k, v, tf32=tf32)
    with torch.cuda.device(q.device):
        for trial in trials:
            if known and (config := _fastest(trial, [_kept(known, trial, problem)], notes)):
                sources.add("table")
            else:
                listed = _candidates(trial.kernel, problem, capability)
                # Serialized code is better than none.
                config = _fastest(trial, listed, notes) or _fastest(
                    trial, listed, notes, serialized_too=True
                )
                sources.add("only" if len(listed) == 1 else "timed")
            if config is None:
                reasons = "; ".join(
                    f"{config}: {reason}"
                    for (kernel, config), reason in notes.skipped.items()
                    if kernel == trial.kernel
                )
                raise RuntimeError(
                    f"none of the configurations of {trial.kernel} works on this GPU: {reasons}"
                )
            chosen[trial.kernel] = config
    source: Source = "timed" if "timed" in sources else "table" if "table" in sources else "only"
    return Tuning(
        configs=(chosen["forward"], chosen["grad_q"], chosen["grad_kv"]),
        facts={
            "configuration": {one.kernel: asdict(chosen[one.kernel]) for one in trials},
            "configuration_source": source,
            "forward_kernel": "gluon" if chosen["forward"].gluon else "portable",
            "why_not_gluon": None
            if chosen["forward"].gluon
            else _not_for_gluon(problem, capability) or _lost_by_gluon(source, notes),
            "tune_ms": (perf_counter() - start) * 1e3,
            **_facts(notes),
        },
    )


def _facts(notes: Notes) -> dict[str, Any]:
    """Of each candidate. `tune_ms` beside them includes compilation."""
    return {
        "timed_launch_count": sum(
            one.launches * len(one.readings_ms) for one in notes.times.values()
        ),
        "candidates": [
            {
                "kernel": kernel,
                **asdict(config),
                "median_ms": one.median_ms,
                "least_ms": min(one.readings_ms),
                "most_ms": max(one.readings_ms),
                "reading_count": len(one.readings_ms),
                "reading_launch_count": one.launches,
                "late_reading_count": one.late,
                "dropped": one.dropped,
            }
            for (kernel, config), one in notes.times.items()
        ],
        "skipped": [
            {"kernel": kernel, **asdict(config), "reason": reason}
            for (kernel, config), reason in notes.skipped.items()
        ],
        "serialization_unread": notes.unread or None,
    }


def _lost_by_gluon(source: Source, notes: Notes) -> str:
    """Why the forward kernel in Gluon was not chosen, though it was a candidate."""
    failed = [why for (_, config), why in notes.skipped.items() if config.gluon]
    slower = "an earlier run chose another" if source == "table" else "another was faster"
    return next(iter(failed), slower)


def _kept(known: Choice, trial: Trial, problem: Problem) -> Config:
    """The configuration of an earlier run, which may not have had this problem's mask."""
    config = known.configs[trial.kernel]
    return config.by_pointers() if config.gluon and problem.mask == "padding" else config


def _not_for_gluon(problem: Problem, capability: tuple[int, int]) -> str | None:
    """Why the forward kernel in Gluon is no candidate; None if it is one."""
    if _is_short(problem):
        return f"sequences of up to {SHORT} have one configuration"
    return why_not_gluon(**_shape(problem, capability))


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


def _fastest(
    trial: Trial, configs: Sequence[Config], notes: Notes, *, serialized_too: bool = False
) -> Config | None:
    """None if no configuration works.

    The results of configurations with descriptors must agree with those of the first one without.
    One that works is not timed: there is no choice.
    """
    working: dict[Config, launch.Launch] = {}
    expected: tuple[Tensor, ...] = ()
    first = next((one for one in configs if not one.descriptors), None)
    configs = sorted(configs, key=lambda one: one != first)  # the others are compared with it
    for config in configs:
        if config.descriptors:
            for result in trial.results:
                result.fill_(torch.nan)  # or an element that is never written would look right
        found = _tried(trial, config, notes, serialized_too=serialized_too)
        if (
            not isinstance(found, str)
            and config.descriptors
            and not _agree(trial.results, expected)
        ):
            found = "gives another result than the candidates without descriptors"
        if isinstance(found, str):
            notes.skipped[trial.kernel, config] = found
            for result, right in zip(trial.results, expected, strict=bool(expected)):
                result.copy_(right)  # the next kernel reads it
            continue
        working[config] = found
        if not expected and any(other.descriptors for other in configs[1:]):
            expected = tuple(result.clone() for result in trial.results)
    if len(working) > 1:
        device = trial.results[0].device
        times = by_turns([made.start for made in working.values()], device)
        for config, one in zip(working, times, strict=True):
            notes.times[trial.kernel, config] = one
    return min(working, key=lambda config: _median_ms(trial, config, notes), default=None)


def _median_ms(trial: Trial, config: Config, notes: Notes) -> float:
    timed = notes.times.get((trial.kernel, config))
    return timed.median_ms if timed and not timed.dropped else inf


def _tried(
    trial: Trial, config: Config, notes: Notes, *, serialized_too: bool
) -> launch.Launch | str:
    """The launch, compiled and made once; or why it is not one to choose: the error of the
    compiler, the driver or the GPU, or what the compiler made of it.
    """
    made = trial.make(config=config)
    if made.config != config:
        return made.why_not or launch.UNDESCRIBABLE
    try:
        asm = compiled(made).asm
        if unsafe := why_unsafe(asm):
            return unsafe
        if _is_serialized(asm, notes) and not serialized_too:
            return SERIALIZED
        made.start()
        torch.cuda.synchronize(trial.results[0].device)
    except torch.OutOfMemoryError:
        raise  # also a RuntimeError, but not the candidate's fault
    except (TritonError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return made


def compiled(made: launch.Launch) -> Any:
    """What Triton makes of it, without starting it."""
    return made.kernel.warmup(
        *made.arguments, grid=(made.programs,), **made.constants, **made.options
    )


def _is_serialized(asm: Mapping[str, Any], notes: Notes) -> bool:
    """False also if the machine code cannot be read, which is noted."""
    try:
        return serialized(asm)
    except Unreadable as reason:
        notes.unread = str(reason)
        return False


def _agree(results: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    """True if nothing is expected."""
    norm = partial(torch.linalg.vector_norm, dtype=torch.float32)
    return all(
        bool(norm(result - right) <= LIMIT * norm(right))
        for result, right in zip(results, expected, strict=bool(expected))
    )
