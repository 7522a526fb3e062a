"""How what was planned ended."""

from enum import StrEnum


class Status(StrEnum):
    """How a case ended. Every planned case ends as exactly one of these."""

    OK = "ok"
    OOM = "oom"
    PREDICTED_OOM = "predicted_oom"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    INCORRECT = "incorrect"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    ERROR = "error"
    INTERRUPTED = "interrupted"


FAILURES = frozenset({Status.INCORRECT, Status.TIMEOUT, Status.CRASHED, Status.ERROR})
"""Statuses that make a run end with exit code 1; the others are results."""

RETRIED = frozenset({Status.CRASHED, Status.ERROR, Status.TIMEOUT})
"""Statuses that --retry-failed measures again."""

ERRORS = ("error_l2_ratio", "output_cosine", "error_ratio", "error_limit_ratio")
"""Fields of a row: how far from the exact result a case was."""
