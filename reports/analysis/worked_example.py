"""The worked example of three tokens, from the study worked_example."""

from collections.abc import Mapping
from typing import Any

from ...harness.rows.findings import WorkedExample, findings_of

STUDY = WorkedExample.STUDY


def examples(run: Mapping[str, Any]) -> list[WorkedExample]:
    """The findings of a run, one per mask."""
    return findings_of(WorkedExample, run.get("studies"))
