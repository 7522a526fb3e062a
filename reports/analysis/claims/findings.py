"""Findings of studies, read without trust: one that lacks what a claim needs is skipped."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....harness.rows.findings import Timed
from ...data.noise_floor import ASSUMED_RATIO, DISTURBED_RATIO, share_text
from ...data.run_meta import finite_number

Finding = dict[str, Any]
Bounded = tuple[float, float, float, float]
"""Where, the value, and its bounds."""
NOT_RECORDED = " (whether other work disturbed them was not recorded)"
"""After the times of a study in rows of earlier versions."""


def of_study(findings: Sequence[Any], name: str) -> list[Finding]:
    return [one for one in findings if isinstance(one, dict) and one.get("study") == name]


def numbers(one: Finding, *names: str) -> list[float] | None:
    """None unless all are finite numbers."""
    found = [finite_number(one, name) for name in names]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def disturbed(one: Timed) -> bool | None:
    """Whether other work competed for the cores in most blocks; None if nobody counted."""
    if one.contended_blocks is None or one.blocks is None:
        return None
    return 2 * one.contended_blocks > one.blocks


def extended(one: Timed, low: float, high: float) -> tuple[float, float, str]:
    """The bounds of a study's ratio, which is of one process, extended by what processes differ.

    With the words that say so. Disturbed processes differ by more, as for ratios of latencies.
    """
    is_disturbed = disturbed(one)
    ratio = DISTURBED_RATIO if is_disturbed else ASSUMED_RATIO
    words = f", which allows for {share_text(ratio, 'assumed')}"
    words += " while other work disturbs them" if is_disturbed else ""
    words += NOT_RECORDED if is_disturbed is None else ""
    return low / (1 + ratio), high * (1 + ratio), words


def unanswered(run: Mapping[str, Any], study: str) -> str:
    """Why a requested study has no findings; "" if it has, or was not requested."""
    for one in of_study(run.get("unanswered") or [], study):
        return f"the study found nothing: {one.get('reason') or one.get('status')}"
    return ""
