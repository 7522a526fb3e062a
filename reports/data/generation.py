"""What the study generation found: tokens generated with and without a cache of keys and values."""

from collections.abc import Sequence
from math import log2

from ...harness.rows.findings import Generated, by

VALUES = tuple(
    name
    for name in Generated.model_fields
    if name.endswith(("_ms", "_exponent", "_ratio"))
    and not set(name.split("_")) & {"low", "high", "error"}
)
"""What a backend that was timed has."""


def timed(found: Sequence[Generated]) -> dict[str, tuple[Generated, ...]]:
    """Those with times, by backend."""
    whole = (one for one in found if all(one[name] is not None for name in VALUES))
    return by(whole, lambda one: one.backend)


def complaints(found: Sequence[Generated]) -> dict[str, str]:
    """Backends whose cached steps are not the full causal pass, and why."""
    return {one.backend: one.complaint for one in found if one.complaint}


def flops_exponent(some: Sequence[Generated], way: str) -> float | None:
    """Of the FLOPs of T steps between the last T and half of it; `some`: of one backend."""
    by_tokens = {one.tokens: one[f"{way}_total_flops"] for one in some}
    last = max(by_tokens)
    half = by_tokens.get(last // 2)
    return log2(by_tokens[last] / half) if half else None
