"""Generation with and without a cache of keys and values, from the study generation."""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from ...harness.rows.findings import Generated, findings_of
from ..formatting import count_text, list_text, range_text, size_text, times_text

STUDY = Generated.STUDY
VALUES = tuple(
    name
    for name in Generated.model_fields
    if name.endswith(("_ms", "_exponent", "_ratio"))
    and not set(name.split("_")) & {"low", "high", "error"}
)
"""What a backend that was timed has."""


def generated(run: Mapping[str, Any]) -> list[Generated]:
    """The findings of a run, by backend, then by tokens."""
    return findings_of(Generated, run.get("studies"))


def timed(found: Sequence[Generated]) -> dict[str, list[Generated]]:
    """Those with times, by backend."""
    by_backend: dict[str, list[Generated]] = {}
    for one in found:
        if all(one[name] is not None for name in VALUES):
            by_backend.setdefault(one.backend, []).append(one)
    return by_backend


def complaints(found: Sequence[Generated]) -> dict[str, str]:
    """Backends whose cached steps are not the full causal pass, and why."""
    return {one.backend: one.complaint for one in found if one.complaint}


def finding(found: Sequence[Generated]) -> str:
    """What the cache saves in the last step and over all of them, at the most tokens."""
    last = [some[-1] for some in timed(found).values()]
    if not last:
        return "no backend was timed"
    texts = [f"{ratio_text(one, 'step')} with {one['backend']}" for one in last]
    one = last[0]
    return (
        f"at {count_text(one['tokens'])} tokens a step without a cache takes {list_text(texts)} the"
        f" time of one with it; by FLOPs {times_text(_over(one, 'step'))}. The cache takes"
        f" {size_text(one['cache_bytes'])}"
    )


def growth(found: Sequence[Generated]) -> str:
    """How the cost of T steps grows at the largest T: in time, and by FLOPs."""
    by_backend = timed(found)
    if not by_backend:
        return ""
    ways = []
    for way, name, limit in (("cached", "with a cache", 2), ("full", "without", 3)):
        measured = [
            f"{some[-1][f'{way}_total_exponent']:.1f}{_exponents(some[-1], way)} with {backend}"
            for backend, some in by_backend.items()
        ]
        some = next(iter(by_backend.values()))
        counted = flops_exponent(some, way)
        by_flops = "" if counted is None else f", by FLOPs T^{counted:.1f} (T^{limit} in the limit)"
        ways.append(f"{name} as T to the power {list_text(measured)}{by_flops}")
    most = count_text(next(iter(by_backend.values()))[-1]["tokens"])
    return (
        f"The time of T steps grows, up to T = {most}, {'; '.join(ways)}. Times grow less than"
        " FLOPs while the cost of calling operations hides them"
    )


def flops_exponent(some: Sequence[Generated], way: str) -> float | None:
    """Of the FLOPs of T steps between the last T and half of it; `some`: of one backend."""
    by_tokens = {one.tokens: one[f"{way}_total_flops"] for one in some}
    last = max(by_tokens)
    half = by_tokens.get(last // 2)
    return log2(by_tokens[last] / half) if half else None


def ratio_text(one: Generated, what: str) -> str:
    name = f"full_over_cached_{what}"
    return times_text(*(one[f"{name}_{part}ratio"] for part in ("", "low_", "high_")))


def _over(one: Generated, what: str) -> float:
    return float(one[f"full_{what}_flops"] / one[f"cached_{what}_flops"])


def _exponents(one: Generated, way: str) -> str:
    low, high = (one[f"{way}_total_{part}exponent"] for part in ("low_", "high_"))
    return range_text(low, high) or " (no interval)"
