"""What is wrong with an audited kernel, by its row: one rule for the audit and for reports."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]
SERIALIZED = "instructions are serialized"  # in ptxas's notes, whatever the reason


def spills(row: Row) -> bool | None:
    """Whether it spills registers in a loop; None if the cubin could not be read.

    What is spilled outside of loops is stored and loaded once per tile. Where only the stack is
    known it decides: our kernels have no local arrays, so it holds nothing but spilled registers.
    """
    inside = ("loop_spill_store_bytes", "loop_spill_load_bytes")
    anywhere = ("thread_stack_bytes", "spill_store_bytes", "spill_load_bytes")
    for names in (inside, anywhere):
        known = [value for name in names if (value := row.get(name)) is not None]
        if known:
            return any(known)
    return None


def is_serialized(row: Row) -> bool:
    """Whether its matrix products run one at a time, by its machine code or by what ptxas says."""
    notes = row.get("ptxas_notes") or ()
    return bool(row.get("serialized")) or any(SERIALIZED in note for note in notes)
