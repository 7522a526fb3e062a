"""A small layer at one length: what a call costs, and what its heads attend to.

The weights are from the study attention_maps.
"""

from collections.abc import Iterator, Sequence
from math import exp

from ..data.exactness import baseline
from ..data.findings import AttentionMap
from ..data.processor_time import time_of
from ..data.row_groups import Row, axis_text, backends, case_key
from ..data.run_meta import Meta
from ..elements import Card, Map, Maps, Table, table_of
from ..formatting import list_text, number_text
from ..quantity import Number, Quantity
from . import Subject
from ._studies import failed, studied

TITLE = "Attention maps"
SECTION = "asked"
APART = True
ORDER = 12
STUDIES = (AttentionMap.STUDY,)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = list(studied(AttentionMap, meta))
    return Subject(
        card=next(_cards(rows, meta, found), None),
        blocks=(
            *(_maps(maps, caption) for _, caption, maps in found),
            *failed(meta, AttentionMap.STUDY),
        ),
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
    rows: Sequence[Row], meta: Meta, found: Sequence[tuple[str, str, list[AttentionMap]]]
) -> Iterator[Card]:
    """Of each run that has maps, and times of a layer at a single length."""
    for name, _, maps in found:
        mine = [row for row in rows if row["run"] == name]
        timed = [row for row in mine if row.get("latency_ms") is not None]
        layers = [row for row in timed if row["scope"] == "layer"]
        if layers and len({row["seq_len"] for row in mine}) == 1:
            lead = baseline(meta[name], layers) or layers[0]["backend"]
            costs = [row for row in timed if row["backend"] == lead]
            texts = [f"for the {row['scope']} {_time(row)}" for row in costs[:2]]
            at = axis_text("seq_len", layers[0]["seq_len"])
            heads = ", ".join(f"head {one.head} to {attended(one)}" for one in maps)
            yield Card(
                title="The layer and its heads",
                sentence=(
                    f"At {at} {lead} takes {list_text(texts)}."
                    f" {finding(maps, numbers=True)}, of {len(maps[0].weight_rows)}."
                ),
                picture=_table(timed),
                subtitle=f"a call at {at}",
                note=f"Tokens that a query attends to on average: {heads}. Nothing is trained.",
            )


def _time(row: Row) -> Number:
    """`21.5 μs (20.1 to 23.0 μs)`."""
    found = time_of(row, bounds=True)
    return Number(found if found.bounds else f"{found} (no interval)")


def _table(timed: Sequence[Row]) -> Table:
    return table_of(
        "Time and peak bytes of a call",
        [row for name in backends(timed) for row in timed if row["backend"] == name],
        {
            "backend": lambda row: str(row["backend"]),
            "scope": lambda row: str(row["scope"]),
            "time (95 % interval)": _time,
            "peak bytes": lambda row: Quantity(row.get("peak_bytes"), "bytes"),
        },
        case=case_key,
    )


def _maps(found: Sequence[AttentionMap], caption: str) -> Maps:
    tokens = len(found[0].weight_rows)
    return Maps(
        title=finding(found),
        caption=f"{caption} · {tokens} tokens, drawn at random, nothing trained",
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
        table=table_of(
            "Heads",
            found,
            {
                "head": lambda one: str(one.head),
                "tokens attended to": lambda one: Number(attended(one)),
                "largest weight": lambda one: max(map(max, one.weight_rows)),
            },
        ),
    )
