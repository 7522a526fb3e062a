"""What the heads of a small layer look at, from the study attention_maps: one map per head."""

from collections.abc import Iterator, Mapping
from math import exp
from typing import Any

import pandas as pd

from ..data.run_meta import Meta, device_name, scenario_name
from ..elements import Block, Map, Maps, Table, Text
from ..formatting import number_text

TITLE = "What heads look at"
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
                yield Text(
                    text=f"The study found nothing: {one.get('reason') or one.get('status')}.",
                    kind="note",
                )
    if not drawn:
        yield Text(
            text="No map was asked for. A scenario asks for it with studies: [attention_maps].",
            kind="note",
        )


def _maps(found: list[Mapping[str, Any]], run: Mapping[str, Any], name: str) -> Maps:
    tokens = len(found[0]["weight_rows"])
    most, least = (pick(found, key=lambda one: one["mean_entropy_nats"]) for pick in (max, min))
    lead = (
        f"Of {len(found)} heads with random weights, head {least['head']} looks at the fewest"
        f" tokens and head {most['head']} at the most"
    )
    rows = tuple((str(one["head"]), *_told(one)) for one in found)
    device = device_name(run)
    return Maps(
        title=lead if len(found) > 1 else "One head with random weights",
        caption=" · ".join(
            filter(
                None,
                (
                    device,
                    f"scenario {scenario_name(run)}",
                    name,
                    f"{tokens} tokens, drawn at random, nothing trained",
                ),
            )
        ),
        description=(
            f"One square per head, {tokens} by {tokens}: each row is a query token, each column a"
            " key token, and lighter means a larger weight. Each row sums to 1. The table below"
            " says for each head how many tokens a query looks at on average, and its largest"
            " weight."
        ),
        x_label="key token",
        y_label="query token",
        value_label="weight",
        maps=tuple(
            Map(label=f"head {one['head']}", rows=tuple(map(tuple, one["weight_rows"])))
            for one in found
        ),
        table=Table(
            title="Heads", columns=("head", "tokens looked at", "largest weight"), rows=rows
        ),
    )


def _told(one: Mapping[str, Any]) -> tuple[str, str]:
    """exp(entropy) tokens of equal weight would have the same entropy."""
    largest = max(max(row) for row in one["weight_rows"])
    return number_text(exp(one["mean_entropy_nats"])), number_text(largest)


def _is_map(one: Mapping[str, Any]) -> bool:
    """Whether a finding is what the study writes; a row could have been changed by
    something else.
    """
    rows = one.get("weight_rows")
    if (
        not isinstance(rows, list)
        or not rows
        or type(one.get("head")) is not int
        or type(one.get("mean_entropy_nats")) not in (int, float)
    ):
        return False
    numbers = [
        row
        for row in rows
        if isinstance(row, list)
        and len(row) == len(rows[0])
        and all(_is_share(value) for value in row)
    ]
    return len(numbers) == len(rows) and bool(rows[0])


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1.0001
