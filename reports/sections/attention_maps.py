"""Attention weights of the heads of a small layer, from the study attention_maps."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ...harness.rows.findings import AttentionMap
from ..analysis.attention_maps import STUDY, attended, finding, head_maps
from ..data.run_meta import Meta, run_caption
from ..elements import Block, Map, Maps, Table, note
from ..formatting import number_text

TITLE = "Attention maps"
ORDER = 49
NEEDS = ()


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    drawn = False
    for name, run in meta.items():
        found = head_maps(run)
        if found:
            drawn = True
            yield _maps(found, run, name if len(meta) > 1 else "")
        for one in run.get("unanswered", []):
            if one.get("study") == STUDY:
                drawn = True
                yield note(f"The study found nothing: {one.get('reason') or one.get('status')}.")
    if not drawn:
        yield note("No maps. A scenario requests them with studies: [attention_maps].")


def _maps(found: list[AttentionMap], run: Mapping[str, Any], name: str) -> Maps:
    tokens = len(found[0].weight_rows)
    rows = tuple((str(one.head), *_numbers(one)) for one in found)
    return Maps(
        title=finding(found),
        caption=f"{run_caption(run, name)} · {tokens} tokens, drawn at random, nothing trained",
        description=(
            f"One square per head, {tokens} by {tokens}: each row is a query token, each column a"
            " key token; lighter is a larger weight. Each row sums to 1. The table below has, for"
            " each head, how many tokens a query attends to on average, and the largest weight."
        ),
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(
            Map(label=f"head {one['head']}", rows=tuple(map(tuple, one.weight_rows)))
            for one in found
        ),
        table=Table(
            title="Heads", columns=("head", "tokens attended to", "largest weight"), rows=rows
        ),
    )


def _numbers(one: AttentionMap) -> tuple[str, str]:
    """Tokens attended to, and the largest weight."""
    return attended(one), number_text(max(max(row) for row in one.weight_rows))
