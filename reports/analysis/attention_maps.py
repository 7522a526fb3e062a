"""The weights of the heads of a small layer, from the study attention_maps."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from ..formatting import number_text

STUDY = "attention_maps"
HeadMap = Mapping[str, Any]  # a finding: `head`, `mean_entropy_nats`, `weight_rows`


def head_maps(run: Mapping[str, Any]) -> list[HeadMap]:
    """The maps that a run found, of the form that the study writes."""
    found = run.get("studies", [])
    return [one for one in found if one.get("study") == STUDY and _is_map(one)]


def attended(one: HeadMap) -> str:
    """On average over the queries: exp(entropy), the number of tokens of equal weight with it."""
    return number_text(exp(one["mean_entropy_nats"]))


def finding(maps: Sequence[HeadMap], *, numbers: bool = False) -> str:
    """`Of 8 heads with random weights, head 3 attends to the fewest tokens and head 1 to the most`.

    `numbers`: with how many.
    """
    if len(maps) < 2:
        return "One head with random weights"
    most, least = (pick(maps, key=lambda one: one["mean_entropy_nats"]) for pick in (max, min))
    few, many = (f" ({attended(one)})" if numbers else "" for one in (least, most))
    return (
        f"Of {len(maps)} heads with random weights, head {least['head']} attends to the fewest"
        f" tokens{few} and head {most['head']} to the most{many}"
    )


def _is_map(one: Mapping[str, Any]) -> bool:
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
