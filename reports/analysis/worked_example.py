"""The worked example of three tokens, from the study worked_example."""

from collections.abc import Mapping
from typing import Any

STUDY = "worked_example"
Example = Mapping[str, Any]  # a finding: `mask`, and rows of numbers
MATRICES = ("query_rows", "key_rows", "value_rows", "score_rows", "weight_rows", "output_rows")


def examples(run: Mapping[str, Any]) -> list[Example]:
    """The findings of a run, one per mask, of the form that the study writes."""
    found = run.get("studies", [])
    return [one for one in found if one.get("study") == STUDY and _is_example(one)]


def _is_example(one: Mapping[str, Any]) -> bool:
    names = one.get("backends")
    return (
        isinstance(one.get("mask"), str)
        and isinstance(one.get("dtype"), str)
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and type(one.get("worst_error")) in (int, float)
        and isinstance(one.get("query_rows"), list)
        and all(_are_rows(one.get(name), len(one["query_rows"])) for name in MATRICES)
    )


def _are_rows(rows: Any, count: int) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) == count > 0
        and all(isinstance(row, list) and all(map(_is_number, row)) for row in rows)
    )


def _is_number(value: Any) -> bool:
    return value is None or type(value) in (int, float)
