"""How a step of a case ends it, and what other exceptions mean."""

from collections.abc import Mapping
from typing import Any

from ..files.errors import first_line, traceback_end
from ..measure.memory_budget import is_out_of_memory, out_of_memory_reason
from ..rows.status import Status


class Ended(Exception):
    """The case goes no further. `fields`: of its row, that are known."""

    def __init__(
        self, status: Status, reason: str, phase: str, fields: Mapping[str, Any] = {}
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.phase, self.fields = status, reason, phase, fields


def outcome(error: Exception, budget_bytes: int) -> dict[str, Any]:
    """Status, reason and log_tail of what a backend raised; called while it is handled."""
    if is_out_of_memory(error):
        reason = out_of_memory_reason(error, budget_bytes)
        return {"status": Status.OOM, "reason": reason, "log_tail": None}
    return {"status": Status.ERROR, "reason": first_line(error), "log_tail": traceback_end()}
