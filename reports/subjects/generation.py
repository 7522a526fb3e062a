"""Tokens generated one by one, with and without a cache of keys and values: time and bytes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2

from ..data.findings import Generated
from ..data.row_groups import Group, Row, by
from ..data.run_meta import Meta
from ..elements import Block, Figure, Text, caution, note, table_of
from ..formatting import capital, count_text, list_text, range_text, size_text
from ..quantity import Cell, Number, Quantity
from . import Subject
from ._over import panel
from ._studies import failed, studied

TITLE = "Generation"
SECTION = "asked"
ORDER = 45
STUDIES = (Generated.STUDY,)
WAYS = (("cached", "with a cache"), ("full", "without a cache"))
VALUES = (
    *(f"{way}_{what}" for way, _ in WAYS for what in ("step_ms", "total_ms", "total_exponent")),
    *(f"full_over_cached_{what}_ratio" for what in ("step", "total")),
)
"""What a backend that was timed has."""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = studied(Generated, meta)
    blocks = [block for _, caption, some in found for block in _of_run(some, caption)]
    return Subject(
        blocks=(*blocks, *failed(meta, Generated.STUDY)),
        lacking="Nothing was generated. A scenario requests it with studies: [generation].",
    )


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


def _of_run(found: Sequence[Generated], caption: str) -> Iterator[Block]:
    yield note(
        "A decoder of one block chooses token after token. Without a cache each step is the whole"
        " causal pass over the tokens so far. With one, keys and values of earlier tokens are kept,"
        " and a step computes those of one token only. Before anything is timed, the logits of"
        " every cached step are compared with those of the full pass in float64."
    )
    for backend, why in complaints(found).items():
        yield caution(f"{backend} was not timed: {why}.")
    if by_backend := timed(found):
        yield _figure(found, by_backend, caption)
        yield Text(text=growth(by_backend))


def _figure(
    found: Sequence[Generated], by_backend: Mapping[str, Sequence[Generated]], caption: str
) -> Figure:
    text, one = finding(by_backend), found[0]
    rows = [one.stored() for some in by_backend.values() for one in some]
    return Figure(
        title=capital(text),
        caption=(
            f"{caption} · d_model = {one.d_model}, h = {one.heads},"
            f" {one.kv_heads} key and value heads, one block"
        ),
        panels=tuple(
            panel(
                Group(label=words, problem={}, rows=rows),
                "tokens",
                f"{way}_step_{{}}ms",
                x_label="tokens so far",
                y_label="time of a step",
            )
            for way, words in WAYS
        ),
        table=table_of(
            "Steps with and without a cache",
            [one for some in by_backend.values() for one in some],
            COLUMNS,
        ),
    )


def finding(by_backend: Mapping[str, Sequence[Generated]]) -> str:
    """What the cache saves in the last step and over all of them, at the most tokens."""
    last = [some[-1] for some in by_backend.values()]
    texts = [f"{over(one, 'step')} with {one.backend}" for one in last]
    one = last[0]
    counted = Quantity(one.full_step_flops / one.cached_step_flops, "times")
    return (
        f"at {count_text(one.tokens)} tokens a step without a cache takes {list_text(texts)} the"
        f" time of one with it; by FLOPs {counted}. The cache takes"
        f" {size_text(one.cache_bytes)}"
    )


def growth(by_backend: Mapping[str, Sequence[Generated]]) -> str:
    """How the cost of T steps grows at the largest T: in time, and by FLOPs."""
    ways = []
    for way, name, limit in (("cached", "with a cache", 2), ("full", "without", 3)):
        measured = [
            f"{some[-1][f'{way}_total_exponent']:.1f}{bounds or ' (no interval)'} with {backend}"
            for backend, some in by_backend.items()
            for ends in [(some[-1][f"{way}_total_{end}_exponent"] for end in ("low", "high"))]
            for bounds in [range_text(*ends)]
        ]
        some = next(iter(by_backend.values()))
        counted = flops_exponent(some, way)
        by_flops = "" if counted is None else f", by FLOPs T^{counted:.1f} (T^{limit} in the limit)"
        ways.append(f"{name} as T to the power {list_text(measured)}{by_flops}")
    most = count_text(next(iter(by_backend.values()))[-1].tokens)
    return (
        f"The time of T steps grows, up to T = {most}, {'; '.join(ways)}. Times grow less than"
        " FLOPs while the cost of calling operations hides them."
    )


def over(one: Generated, what: str) -> Quantity:
    """The time of a step, or of all, without a cache over that with one."""
    name = f"full_over_cached_{what}"
    return Quantity(
        one[f"{name}_ratio"], "times", one[f"{name}_low_ratio"], one[f"{name}_high_ratio"]
    )


COLUMNS: Mapping[str, Callable[[Generated], Cell]] = {
    "tokens": lambda one: Quantity(one.tokens, "count"),
    "backend": lambda one: one.backend,
    "step with a cache": lambda one: Quantity(one["cached_step_ms"], "ms"),
    "without": lambda one: Quantity(one["full_step_ms"], "ms"),
    "ratio": lambda one: over(one, "step"),
    "all steps with a cache": lambda one: Quantity(one["cached_total_ms"], "ms"),
    "without, all": lambda one: Quantity(one["full_total_ms"], "ms"),
    "ratio of all": lambda one: over(one, "total"),
    "FLOPs of all with a cache": lambda one: Quantity(one.cached_total_flops, "flops"),
    "without, FLOPs": lambda one: Quantity(one.full_total_flops, "flops"),
    "cache": lambda one: Number(size_text(one.cache_bytes)),
    "error ratio": lambda one: one.error_ratio,
}
