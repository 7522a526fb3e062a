"""What a backend computes: attention, an approximation, or something else.

Only exact backends are ranked.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..formatting import rough_percent_text
from .row_groups import Row, backends

MARKS = {"approximate": "~", "other": "≠"}
MEANINGS = {
    "approximate": "~ approximates attention, with the error that is shown",
    "other": "≠ computes something else, and has no error",
}


RECURRENT = ("rnn", "lstm")
"""Backends that are a recurrent layer in place of attention."""


def is_exact(row: Mapping[str, Any]) -> bool:
    """Rows written before inexact backends existed have no `exactness`."""
    return row.get("exactness") in (None, "exact")


NO_INFORMATION_COSINE = 0.1
"""Below it, the best multiple of an output explains less than 1 % of the exact one's sum of
squares: it is as far off as zeros are.
"""


def carries_nothing(row: Mapping[str, Any]) -> bool:
    """Whether an approximation's output has next to nothing in common with the exact one.

    Rows of earlier versions have no cosine, and are not known to.
    """
    cosine = row.get("output_cosine")
    return not is_exact(row) and cosine is not None and abs(cosine) < NO_INFORMATION_COSINE


def exactness_note(row: Mapping[str, Any]) -> str:
    """`approximate, error 12 %`, `approximate, uncorrelated with exact attention` or `not
    attention`; "" for an exact backend.
    """
    if is_exact(row):
        return ""
    if row["exactness"] == "other":
        return "not attention"
    if carries_nothing(row):
        return "approximate, uncorrelated with exact attention"
    error = row.get("error_l2_ratio")
    return "approximate" if error is None else f"approximate, error {rough_percent_text(error)}"


def meanings(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the marks of these rows mean."""
    found = {row.get("exactness") for row in rows}
    return [meaning for kind, meaning in MEANINGS.items() if kind in found]


def baseline(run: Mapping[str, Any], rows: Sequence[Row]) -> str | None:
    """The scenario's baseline, else the first exact backend of its plan."""
    scenario = run["scenario"]
    named, planned = scenario.get("baseline"), scenario.get("backends")
    known = backends(rows)
    inexact = {row["backend"] for row in rows if not is_exact(row)}
    exact_first = sorted(
        [*(planned if isinstance(planned, list) else []), *known], key=lambda name: name in inexact
    )
    return next((name for name in [named, *exact_first] if name in known), None)
