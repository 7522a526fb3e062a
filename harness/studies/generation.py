"""Generation of a sequence, token by token, with and without a cache of keys and values.

A decoder of one block generates the same tokens both ways, several times in turns, and every step
is timed. Before that, the logits of every cached step are compared with the exact ones.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from math import log2
from statistics import geometric_mean, median
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...impls import Decoder, load, missing, names
from ...impls.modules.generation import Cache, empty_cache, extend, generate, step_flops
from ...impls.problem import Problem
from ..measure.clock import Clock, clock_for
from ..measure.conditions import conditions_for, contended, count_flagged
from ..measure.error_limits import LIMIT_RATIO, ROW_LIMIT_RATIO
from ..rows.findings import Finding

QUESTION = "What does a cache of keys and values save when a sequence is generated token by token?"
SHOWN = {
    "note": (
        "A decoder of one block chooses token after token. Without a cache each step is the whole"
        " causal pass over the tokens so far. With one, keys and values of earlier tokens are kept,"
        " and a step computes those of one token only. Before anything is timed, the logits of"
        " every cached step are compared with those of the full pass in float64."
    ),
    "map": "full_over_cached_step_ratio",
    "x": "tokens",
    "y": "backend",
    "value": "step without over with a cache",
}
PARTS = {"process": (1, 2, 3, 4, 5)}
SHORTEST, LONGEST = 32, 1024  # tokens: of the problem's kv_seq_len, as many as are in between
VOCABULARY, DEPTH = 64, 1
REPEATS = 2  # of a backend in a process
WARM_UP_STEPS = 16
FIRST = 8  # tokens of the shortest sequence that is reported
WINDOW = 8  # a step's time at n tokens: the median of the last n / 8 steps
Times = list[list[float]]
"""Milliseconds of every step, for each repeat."""


class BothWays(NamedTuple):
    """Times with and without a cache, a block for each sequence.

    `contended_blocks`: those during which other work wanted the same cores; None if unknown.
    """

    cached: Times
    full: Times
    contended_blocks: int | None


def run(problem: Problem, device: torch.device, seed: int, *, process: int) -> Iterator[Finding]:
    """One finding per backend and number of tokens: 8, 16, 32, ... up to the problem's kv_seq_len.

    `complaint`: why a backend's cached steps are not the full causal pass; it is not timed then.
    `blocks`: sequences that were timed, and `contended_blocks` those of them that were disturbed.
    """
    longest = min(LONGEST, max(SHORTEST, problem.kv_seq_len))
    shape = Problem(
        batch=1,
        seq_len=longest + 1,
        d_model=problem.d_model,
        heads=problem.heads,
        kv_heads=problem.kv_heads,
        dtype=problem.dtype,
        causal=True,
    )
    decoder = Decoder(shape, VOCABULARY, DEPTH, device=device, seed=seed)
    prompt = torch.zeros(1, 1, dtype=torch.int64, device=device)
    for name in names():
        if not _can(name, shape, device):
            continue
        decoder.backend = name
        error_ratio, complaint = gate(decoder, prompt, longest)
        times = None if complaint else _times(decoder, prompt, longest, device)
        n = FIRST
        while n <= longest:
            yield Finding(
                backend=name,
                tokens=n,
                d_model=shape.d_model,
                heads=shape.heads,
                kv_heads=shape.kv_heads,
                dtype=shape.dtype,
                error_ratio=error_ratio,
                complaint=complaint,
                process=process,
                cache_bytes=_cache_bytes(decoder, n),
                **_counted(decoder, n),
                **({} if times is None else _timed(times, n)),
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


def _can(name: str, shape: Problem, device: torch.device) -> bool:
    """Whether an exact backend computes a step of one query, without compiling each length."""
    if missing(name):
        return False
    backend = load(name)
    if backend.exactness != "exact" or backend.compiles:
        return False
    step = replace(shape, seq_len=1, kv_seq_len=shape.seq_len, causal=False, causal_align="")
    layer = replace(shape, scope="layer")
    return not (backend.why_not(step, device) or backend.why_not(layer, device))


@torch.no_grad()
def _times(decoder: Decoder, prompt: Tensor, steps: int, device: torch.device) -> BothWays:
    """With and without a cache, in turns."""
    clock, watch = clock_for(device), conditions_for(device)
    both: tuple[Times, Times] = ([], [])
    flags: list[bool | None] = []
    for cached in (True, False):
        _one_sequence(decoder, prompt, WARM_UP_STEPS, clock, cached=cached)
    for _ in range(REPEATS):
        for cached, kept in zip((True, False), both, strict=True):
            watch.before()
            kept.append(_one_sequence(decoder, prompt, steps, clock, cached=cached))
            flags.append(contended(watch.after()))
    return BothWays(*both, contended_blocks=count_flagged(flags))


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


def _cache_bytes(decoder: Decoder, n: int) -> int:
    p = decoder.problem
    return DEPTH * n * p.kv_heads * (p.d_k + p.d_v) * p.item_bytes


def _counted(decoder: Decoder, n: int) -> dict[str, int]:
    """FLOPs of the step at n tokens, and of the n steps up to it."""
    found: dict[str, int] = {}
    for name, cached in (("cached", True), ("full", False)):
        steps = [step_flops(decoder, one, cached=cached) for one in range(1, n + 1)]
        found |= {f"{name}_step_flops": steps[-1], f"{name}_total_flops": sum(steps)}
    return found


def _timed(times: BothWays, n: int) -> dict[str, Any]:
    """The step at n tokens, the n steps up to it and how they grow, in this process.

    `*_total_exponent`: of the time of n steps over that of n / 2, log2.
    """
    found: dict[str, Any] = {
        "contended_blocks": times.contended_blocks,
        "blocks": len(times.cached) + len(times.full),
    }
    window = max(1, n // WINDOW)
    for way, sequences in (("cached", times.cached), ("full", times.full)):
        totals, halves = ([sum(one[:end]) for one in sequences] for end in (n, n // 2))
        found[f"{way}_step_ms"] = geometric_mean([median(one[n - window : n]) for one in sequences])
        found[f"{way}_total_ms"] = geometric_mean(totals)
        found[f"{way}_total_exponent"] = log2(geometric_mean(totals) / geometric_mean(halves))
    for what in ("step", "total"):
        ratio = found[f"full_{what}_ms"] / found[f"cached_{what}_ms"]
        found[f"full_over_cached_{what}_ratio"] = ratio
    return found
