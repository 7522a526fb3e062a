"""What an exception of a backend means."""

from typing import Any

from ..files.errors import first_line, traceback_end
from ..measure.memory_budget import is_out_of_memory, out_of_memory_reason
from ..rows.status import Status


def outcome(error: Exception, budget_bytes: int) -> dict[str, Any]:
    """Status, reason and log_tail of what a backend raised; called while it is handled."""
    if is_out_of_memory(error):
        reason = out_of_memory_reason(error, budget_bytes)
        return {"status": Status.OOM, "reason": reason, "log_tail": None}
    return {"status": Status.ERROR, "reason": first_line(error), "log_tail": traceback_end()}
