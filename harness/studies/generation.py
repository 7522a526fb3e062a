"""Generation of a sequence, token by token, with and without a cache of keys and values.

A decoder of one block chooses token after token, the same ones both ways. Without a cache each step
is the whole causal pass over the tokens so far. With one, keys and values of earlier tokens are
kept, and a step computes those of one token only. Every step is timed, both ways in turns; before
that, the logits of every cached step are compared with those of the full pass in float64.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from math import log2
from statistics import geometric_mean, median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from ...impls import Decoder
from ...impls.modules.block import Cache, empty_cache, extend, generate, step_flops
from ...impls.problem import Problem
from ..measure.clock import Clock, clock_for
from ..measure.conditions import conditions_for, contended, count_flagged
from ..measure.error_limits import LIMIT_RATIO, ROW_LIMIT_RATIO
from ..rows.findings import Finding
from ._shared import exact_backends

QUESTION = "What does a key/value cache save when a sequence is generated token by token?"
SHOWN = {
    "map": "full_over_cached_step_ratio",
    "x": "tokens",
    "y": "backend",
    "value": "step without over with a cache",
}
PARTS = {"process": (1, 2, 3, 4, 5)}
SHORTEST, LONGEST = 32, 1024  # tokens: of the problem's kv_seq_len, as many as are in between
VOCABULARY, DEPTH = 64, 1
WAYS = {"cached": True, "full": False}
REPEATS = 2  # of a backend in a process
WARM_UP_STEPS = 16
FIRST = 8  # tokens of the shortest sequence that is reported
WINDOW = 8  # a step's time at n tokens: the median of the last n / 8 steps


def run(problem: Problem, device: torch.device, seed: int, *, process: int) -> Iterator[Finding]:
    """One finding per backend and number of tokens: 8, 16, 32, ... up to the problem's kv_seq_len.

    `complaint`: why a backend's cached steps are not the full causal pass; it is not timed then.
    `blocks`: sequences that were timed, and `contended_blocks` those of them that were disturbed.
    """
    longest = min(LONGEST, max(SHORTEST, problem.kv_seq_len))
    sizes: dict[str, Any] = {
        "d_model": problem.d_model,
        "heads": problem.heads,
        "kv_heads": problem.kv_heads,
    }
    shape = Problem(batch=1, seq_len=longest + 1, **sizes, dtype=problem.dtype, causal=True)
    step = replace(shape, seq_len=1, kv_seq_len=shape.seq_len, causal=False, causal_align="")
    decoder = Decoder(shape, VOCABULARY, DEPTH, device=device, seed=seed)
    prompt = torch.zeros(1, 1, dtype=torch.int64, device=device)
    for backend in exact_backends(step, device):
        if backend.why_not(replace(shape, scope="layer"), device):
            continue
        decoder.backend = backend.name
        error_ratio, complaint = gate(decoder, prompt, longest)
        clock = clock_for(device)
        times, conditions = ({}, {}) if complaint else _times(decoder, prompt, longest, clock)
        n = FIRST
        while n <= longest:
            yield Finding(
                backend=backend.name,
                tokens=n,
                **sizes,
                dtype=shape.dtype,
                error_ratio=error_ratio,
                complaint=complaint,
                process=process,
                cache_bytes=DEPTH * n * shape.kv_heads * (shape.d_k + shape.d_v) * shape.item_bytes,
                **_counted(decoder, n),
                **(_timed(times, n) if times else {}),
                **conditions,
            )
            n *= 2


def gate(decoder: Decoder, prompt: Tensor, steps: int) -> tuple[float, str]:
    """The error of cached steps over that of the textbook's full pass in the same dtype, and what
    is wrong with it; "" if nothing is.

    The exact logits are those of the full causal pass in float64 over the same tokens.
    """
    tokens, found = generate(decoder, prompt, steps, cached=True)
    exact, textbook = deepcopy(decoder).double(), deepcopy(decoder)
    exact.backend, textbook.backend = "fused", "naive"
    with torch.no_grad():
        wanted = exact(tokens[:, :-1])[0]  # [batch, steps, vocabulary]
        usual = textbook(tokens[:, :-1])[0]
    errors, allowed = (_errors(one, wanted[:, -steps:]) for one in (found, usual[:, -steps:]))
    ratio = float(errors.square().mean().sqrt() / allowed.square().mean().sqrt())
    worst = int(errors.argmax())
    if not ratio <= LIMIT_RATIO or not float(errors[worst] / allowed.max()) <= ROW_LIMIT_RATIO:
        return ratio, (
            f"cached steps are not the full causal pass: {ratio:.3g} times as far from the exact"
            f" logits as the textbook formula, the worst is step {worst + 1}"
        )
    return ratio, ""


def _errors(found: Tensor, exact: Tensor) -> Tensor:
    """Relative L2 error of each step's logits, [steps]."""
    sizes: Tensor = exact.norm(dim=-1)
    distances: Tensor = (found.double() - exact).norm(dim=-1)
    return (distances / sizes)[0]


@torch.no_grad()
def _times(
    decoder: Decoder, prompt: Tensor, steps: int, clock: Clock
) -> tuple[dict[str, list[list[float]]], dict[str, Any]]:
    """Milliseconds of every step of each sequence, with and without a cache, in turns; and what
    disturbed them.
    """
    watch, flags = conditions_for(prompt.device), []
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for cached in WAYS.values():
        _one_sequence(decoder, prompt, WARM_UP_STEPS, clock, cached=cached)
    for _ in range(REPEATS):
        for way, cached in WAYS.items():
            watch.before()
            found[way].append(_one_sequence(decoder, prompt, steps, clock, cached=cached))
            flags.append(contended(watch.after()))
    return found, {"blocks": len(flags), "contended_blocks": count_flagged(flags)}


def _one_sequence(
    decoder: Decoder, prompt: Tensor, steps: int, clock: Clock, *, cached: bool
) -> list[float]:
    """Milliseconds of each step, the choice of the token included."""
    tokens, times = prompt, []
    cache: Cache | None = empty_cache(decoder, 1, steps + 1) if cached else None
    for _ in range(steps):
        clock.finish()
        start = perf_counter()
        if cache is None:
            logits = decoder(tokens)[0]
        else:
            logits = extend(decoder, tokens[:, cache.length :], cache)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
        clock.finish()
        times.append((perf_counter() - start) * 1e3)
    return times


def _counted(decoder: Decoder, n: int) -> dict[str, int]:
    """FLOPs of the step at n tokens, and of the n steps up to it."""
    found: dict[str, int] = {}
    for way, cached in WAYS.items():
        steps = [step_flops(decoder, one, cached=cached) for one in range(1, n + 1)]
        found |= {f"{way}_step_flops": steps[-1], f"{way}_total_flops": sum(steps)}
    return found


def _timed(times: dict[str, list[list[float]]], n: int) -> dict[str, float]:
    """The step at n tokens, the n steps up to it and how they grow, in this process.

    `*_total_exponent`: of the time of n steps over that of n / 2, log2.
    """
    found: dict[str, float] = {}
    window = max(1, n // WINDOW)
    for way, sequences in times.items():
        total_ms, half_ms = (
            geometric_mean(sum(one[:end]) for one in sequences) for end in (n, n // 2)
        )
        found[f"{way}_step_ms"] = geometric_mean(median(one[n - window : n]) for one in sequences)
        found |= {f"{way}_total_ms": total_ms, f"{way}_total_exponent": log2(total_ms / half_ms)}
    for what in ("step", "total"):
        ratio = found[f"full_{what}_ms"] / found[f"cached_{what}_ms"]
        found[f"full_over_cached_{what}_ratio"] = ratio
    return found
