"""A small layer at one length: what a call costs, and what its heads attend to.

The weights are from the study attention_maps.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from ...harness.rows.findings import AttentionMap, findings_of
from ..data.exactness import baseline
from ..data.row_groups import Row, axis_text, backends, case_key
from ..data.run_meta import Meta, run_caption
from ..elements import Card, Map, Maps, Table
from ..formatting import (
    bytes_text,
    in_brackets,
    list_text,
    measured_bounds_text,
    number_text,
    time_text,
)
from . import Subject
from ._studies import failed

TITLE = "Attention maps"
ORDER = 12
NEEDS = ()


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = {name: findings_of(AttentionMap, run.get("studies")) for name, run in meta.items()}
    drawn = [
        _maps(maps, meta[name], name if len(meta) > 1 else "")
        for name, maps in found.items()
        if maps
    ]
    return Subject(
        card=next(_cards(rows, meta, found), None),
        blocks=(*drawn, *failed(meta, AttentionMap.STUDY)),
        lacking="No maps. A scenario requests them with studies: [attention_maps].",
    )


def attended(one: AttentionMap) -> str:
    """On average over the queries: exp(entropy), the number of tokens of equal weight with it."""
    return number_text(exp(one.mean_entropy_nats))


def finding(maps: Sequence[AttentionMap], *, numbers: bool = False) -> str:
    """`Of 8 heads with random weights, head 3 attends to the fewest tokens and head 1 to the most`.

    `numbers`: with how many.
    """
    if len(maps) < 2:
        return "One head with random weights"
    most, least = (pick(maps, key=lambda one: one.mean_entropy_nats) for pick in (max, min))
    few, many = (f" ({attended(one)})" if numbers else "" for one in (least, most))
    return (
        f"Of {len(maps)} heads with random weights, head {least.head} attends to the fewest"
        f" tokens{few} and head {most.head} to the most{many}"
    )


def _cards(
    rows: Sequence[Row], meta: Meta, found: Mapping[str, list[AttentionMap]]
) -> Iterator[Card]:
    """Of each run that has maps, and times of a layer at a single length."""
    for name, maps in found.items():
        mine = [row for row in rows if row["run"] == name]
        timed = [row for row in mine if row.get("latency_ms") is not None]
        layers = [row for row in timed if row["scope"] == "layer"]
        if maps and layers and len({row["seq_len"] for row in mine}) == 1:
            lead = baseline(meta[name], layers) or layers[0]["backend"]
            costs = [row for row in timed if row["backend"] == lead]
            texts = [f"for the {row['scope']} {_time(row)}" for row in costs[:2]]
            at = axis_text("seq_len", layers[0]["seq_len"])
            heads = ", ".join(f"head {one.head} to {attended(one)}" for one in maps)
            yield Card(
                name="attention_maps",
                title="The layer and its heads",
                sentence=(
                    f"At {at} {lead} takes {list_text(texts)}."
                    f" {finding(maps, numbers=True)}, of {len(maps[0].weight_rows)}."
                ),
                picture=_table(timed),
                subtitle=f"a call at {at}",
                note=f"Tokens that a query attends to on average: {heads}. Nothing is trained.",
            )


def _time(row: Row) -> str:
    """`21.5 μs (20.1 to 23.0 μs)`."""
    low, high = row.get("latency_low_ms"), row.get("latency_high_ms")
    known = in_brackets(measured_bounds_text(low, high, time_text))
    return f"{time_text(row['latency_ms'])}{known or ' (no interval)'}"


def _table(timed: Sequence[Row]) -> Table:
    shown = [row for name in backends(timed) for row in timed if row["backend"] == name]
    return Table(
        title="Time and peak bytes of a call",
        columns=("backend", "scope", "time (95 % interval)", "peak bytes"),
        rows=tuple(
            (row["backend"], row["scope"], _time(row), bytes_text(row.get("peak_bytes")))
            for row in shown
        ),
        cases={(place, 0): case_key(row) for place, row in enumerate(shown)},
    )


def _maps(found: Sequence[AttentionMap], run: Mapping[str, Any], name: str) -> Maps:
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
            Map(label=f"head {one.head}", rows=tuple(map(tuple, one.weight_rows))) for one in found
        ),
        table=Table(
            title="Heads", columns=("head", "tokens attended to", "largest weight"), rows=rows
        ),
    )


def _numbers(one: AttentionMap) -> tuple[str, str]:
    """Tokens attended to, and the largest weight."""
    return attended(one), number_text(max(max(row) for row in one.weight_rows))
