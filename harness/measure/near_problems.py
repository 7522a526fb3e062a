"""What a wrong result is right for: problems near the one that was asked."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import torch

from ...impls.problem import CausalAlign, Problem
from .correctness import CorrectnessCheck
from .prepared_call import Tensors


def explained(problem: Problem, tensors: Tensors, output: torch.Tensor, seed: int) -> str:
    """What else the output is the result of, as the end of a complaint; "" if nobody knows."""
    inputs, weights = tensors
    for words, near, query_factor in _near(replace(problem, passes="forward")):
        scaled = inputs if query_factor == 1 else replace(inputs, query=inputs.query * query_factor)
        check = CorrectnessCheck(near, scaled, weights, seed, few_rows=True)
        if not check.check(output, ()).complaint:
            return f"; it is right for {words}"
    return ""


def _near(p: Problem) -> Iterator[tuple[str, Problem, float]]:
    """In words, the problem, and the factor of its queries."""
    if p.causal and p.seq_len != p.kv_seq_len:
        other: CausalAlign = "top_left" if p.causal_align == "bottom_right" else "bottom_right"
        with suppress(ValueError):
            near = replace(p, causal_align=other)
            yield f"causal_align {other}, where {p.causal_align} was asked", near, 1
    if p.causal:
        with suppress(ValueError):
            yield "attention that is not causal", replace(p, causal=False, causal_align=""), 1
    if p.mask != "none":
        yield f"attention without the mask {p.mask}", replace(p, mask="none", window=0), 1
    for window in (p.window - 1, p.window + 1) if p.windowed else ():
        if window:
            yield f"window {window}, where {p.window} was asked", replace(p, window=window), 1
    if p.softcap:
        yield "attention without the softcap", replace(p, softcap=0.0), 1
    if p.scope == "core" and not p.latent:
        yield "scores without the scale", p, 1 / p.scale
