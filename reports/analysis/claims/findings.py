"""Findings of studies, read without trust: one that lacks what a claim needs is skipped."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...data.noise_floor import ASSUMED_RATIO, share_text
from ...data.run_meta import finite_number

Finding = dict[str, Any]
Bounded = tuple[float, float, float, float]
"""Where, the value, and its bounds."""
ALLOWS = f", which allows for {share_text(ASSUMED_RATIO, 'assumed')}"
"""After the interval of a study, which measures in one process."""


def of_study(findings: Sequence[Any], name: str) -> list[Finding]:
    return [one for one in findings if isinstance(one, dict) and one.get("study") == name]


def numbers(one: Finding, *names: str) -> list[float] | None:
    """None unless all are finite numbers."""
    found = [finite_number(one, name) for name in names]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def unanswered(run: Mapping[str, Any], study: str) -> str:
    """Why a requested study has no findings; "" if it has, or was not requested."""
    for one in of_study(run.get("unanswered") or [], study):
        return f"the study found nothing: {one.get('reason') or one.get('status')}"
    return ""
