"""Tokens generated one by one, with and without a cache of keys and values: time and bytes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from ...harness.rows.findings import Generated
from ..analysis.generation import (
    STUDY,
    complaints,
    finding,
    generated,
    growth,
    ratio_text,
    timed,
)
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Figure, Panel, Series, Table, Text, caution, note
from ..formatting import count_text, flops_text, number_text, size_text, time_text

TITLE = "Generation"
ORDER = 45
NEEDS = ()
WAYS = (("cached", "with a cache"), ("full", "without a cache"))


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    shown = False
    for name, run in meta.items():
        found = generated(run)
        if found:
            shown = True
            yield from _of_run(found, run, name if len(meta) > 1 else "")
        for one in run.get("unanswered", []):
            if one.get("study") == STUDY:
                shown = True
                yield note(f"The study found nothing: {one.get('reason') or one.get('status')}.")
    if not shown:
        yield note("Nothing was generated. A scenario requests it with studies: [generation].")


def _of_run(found: Sequence[Generated], run: Mapping[str, Any], name: str) -> Iterator[Block]:
    yield note(
        "A decoder of one block chooses token after token. Without a cache each step is the whole"
        " causal pass over the tokens so far. With one, keys and values of earlier tokens are kept,"
        " and a step computes those of one token only. Before anything is timed, the logits of"
        " every cached step are compared with those of the full pass in float64."
    )
    for backend, why in complaints(found).items():
        yield caution(f"{backend} was not timed: {why}.")
    by_backend = timed(found)
    if not by_backend:
        return
    text = finding(found)
    yield Figure(
        title=f"{text[0].upper()}{text[1:]}",
        caption=(
            f"{run_caption(run, name)} · d_model = {found[0]['d_model']}, h = {found[0]['heads']},"
            f" {found[0]['kv_heads']} key and value heads, one block"
        ),
        description=(
            "Time of a step over the number of tokens so far, both logarithmic: one panel with a"
            " cache, one without, one line per backend, 95 % intervals as bars. The table below has"
            " the numbers, and the time of all steps together."
        ),
        panels=tuple(
            Panel(
                title=words,
                x_label="tokens so far",
                y_label="time of a step",
                unit="ms",
                series=tuple(_series(one, some, way) for one, some in by_backend.items()),
            )
            for way, words in WAYS
        ),
        table=_table(by_backend),
    )
    yield Text(text=f"{growth(found)}.")


def _series(backend: str, some: Sequence[Generated], way: str) -> Series:
    y, low, high = (
        tuple(one[f"{way}_step_{part}ms"] for one in some) for part in ("", "low_", "high_")
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(one.tokens for one in some),
        y=y,
        low=low,
        high=high,
    )


def _table(by_backend: Mapping[str, Sequence[Generated]]) -> Table:
    return Table(
        title="Steps with and without a cache",
        columns=(
            "tokens",
            "backend",
            "step with a cache",
            "without",
            "ratio",
            "all steps with a cache",
            "without, all",
            "ratio of all",
            "FLOPs of all with a cache",
            "without, FLOPs",
            "cache",
            "error ratio",
        ),
        rows=tuple(
            (
                count_text(one.tokens),
                backend,
                time_text(one.cached_step_ms),
                time_text(one.full_step_ms),
                ratio_text(one, "step"),
                time_text(one.cached_total_ms),
                time_text(one.full_total_ms),
                ratio_text(one, "total"),
                flops_text(one.cached_total_flops),
                flops_text(one.full_total_flops),
                size_text(one.cache_bytes),
                number_text(one.error_ratio),
            )
            for backend, some in by_backend.items()
            for one in some
        ),
    )
