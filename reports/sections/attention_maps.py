"""Attention weights of the heads of a small layer, from the study attention_maps."""

from collections.abc import Iterator, Mapping
from math import exp
from typing import Any

import pandas as pd

from ..data.run_meta import Meta, run_caption
from ..elements import Block, Map, Maps, Table, note
from ..formatting import number_text

TITLE = "Attention maps"
ORDER = 49
NEEDS = ()
STUDY = "attention_maps"


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    drawn = False
    for name, run in meta.items():
        found = [
            one for one in run.get("studies", []) if one.get("study") == STUDY and _is_map(one)
        ]
        if found:
            drawn = True
            yield _maps(found, run, name if len(meta) > 1 else "")
        for one in run.get("unanswered", []):
            if one.get("study") == STUDY:
                drawn = True
                yield note(f"The study found nothing: {one.get('reason') or one.get('status')}.")
    if not drawn:
        yield note("No maps. A scenario requests them with studies: [attention_maps].")


def _maps(found: list[Mapping[str, Any]], run: Mapping[str, Any], name: str) -> Maps:
    tokens = len(found[0]["weight_rows"])
    most, least = (pick(found, key=lambda one: one["mean_entropy_nats"]) for pick in (max, min))
    lead = (
        f"Of {len(found)} heads with random weights, head {least['head']} attends to the fewest"
        f" tokens and head {most['head']} to the most"
    )
    rows = tuple((str(one["head"]), *_numbers(one)) for one in found)
    return Maps(
        title=lead if len(found) > 1 else "One head with random weights",
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
            Map(label=f"head {one['head']}", rows=tuple(map(tuple, one["weight_rows"])))
            for one in found
        ),
        table=Table(
            title="Heads", columns=("head", "tokens attended to", "largest weight"), rows=rows
        ),
    )


def _numbers(one: Mapping[str, Any]) -> tuple[str, str]:
    """exp(entropy), the number of tokens of equal weight with this entropy; the largest weight."""
    largest = max(max(row) for row in one["weight_rows"])
    return number_text(exp(one["mean_entropy_nats"])), number_text(largest)


def _is_map(one: Mapping[str, Any]) -> bool:
    """Whether the finding has the form that the study writes."""
    rows = one.get("weight_rows")
    if (
        not isinstance(rows, list)
        or not rows
        or type(one.get("head")) is not int
        or type(one.get("mean_entropy_nats")) not in (int, float)
    ):
        return False
    return bool(rows[0]) and all(
        isinstance(row, list) and len(row) == len(rows[0]) and all(map(_is_share, row))
        for row in rows
    )


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1.0001
