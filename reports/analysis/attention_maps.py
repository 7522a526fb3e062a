"""The weights of the heads of a small layer, from the study attention_maps."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from ...harness.rows.findings import AttentionMap, findings_of
from ..formatting import number_text

STUDY = AttentionMap.STUDY


def head_maps(run: Mapping[str, Any]) -> list[AttentionMap]:
    """The maps that a run found."""
    return findings_of(AttentionMap, run.get("studies"))


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
        f"Of {len(maps)} heads with random weights, head {least['head']} attends to the fewest"
        f" tokens{few} and head {most['head']} to the most{many}"
    )
