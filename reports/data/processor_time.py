"""Processor times of calls, of blocks in which they hold beside other work."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from ...harness.stats.intervals import Samples
from ..formatting import time_text
from ..quantity import Quantity

SHORT_MS = 0.02  # of a call on a GPU, of which two events may take a tenth or more
PROCESSOR_TIMES = ("processor_ms", "thread_ms")
"""Of all threads, and of the one that makes the call. Where work is spread over the threads, the
latency of a quiet machine is proportional to both.
"""


def processor_samples(row: Mapping[str, Any], name: str) -> Samples:
    """By one of PROCESSOR_TIMES, [process][block], one of a block or none."""
    conditions = row.get("conditions") or ()
    return [
        [[block[name]] if block.get(name) else [] for block in process] for process in conditions
    ]


def is_known(samples: Samples) -> bool:
    """Of half of the blocks at least."""
    blocks = [block for process in samples for block in process]
    return 2 * sum(map(bool, blocks)) >= len(blocks) > 0


def typical_ms(samples: Samples) -> float:
    """Of samples that are known."""
    return median(call for process in samples for block in process for call in block)


def in_most(blocks: int | None, of: int | None) -> bool:
    """Whether something happened in most blocks."""
    return 2 * (blocks or 0) > (of or 0)


def disturbed(*rows: Mapping[str, Any]) -> bool:
    """Whether other work competed for the cores in most blocks of one of these rows."""
    return any(in_most(row.get("contended_blocks"), row.get("blocks")) for row in rows)


def time_of(row: Mapping[str, Any], *, bounds: bool = False) -> Quantity:
    """A case's latency: `41.0 ms`. Where other work disturbed most blocks, the processor time of a
    call in all threads stands beside it, if it is known: `41.0 ms, processor 520 μs`. Beside a
    short call of a GPU, what the events themselves take: `11.2 μs, event floor 2.04 μs`.
    """
    low, high = (row[f"latency_{name}_ms"] if bounds else None for name in ("low", "high"))
    used_ms = row.get("processor_ms") if disturbed(row) else None
    note = event_floor(row) if used_ms is None else f", processor {time_text(used_ms)}"
    return Quantity(row.get("latency_ms"), "ms", low, high, note)


def event_floor(row: Mapping[str, Any]) -> str:
    """`, event floor 2.04 μs`, of which a short time has up to a fifth; "" of others."""
    latency_ms, floor_ms = row.get("latency_ms"), row.get("shortest_call_ms")
    is_short = row.get("device") == "cuda" and (latency_ms or SHORT_MS) < SHORT_MS
    return f", event floor {time_text(floor_ms)}" if is_short and floor_ms else ""


def told_time(row: Mapping[str, Any]) -> str:
    """The same in a sentence: `41.0 ms (520 μs of processor time)`."""
    kind, _, beside = time_of(row).note.removeprefix(", ").partition(" ")
    of = f" ({beside} of processor time)" if kind == "processor" else event_floor(row)
    return time_text(row["latency_ms"]) + of


def samples_of_pairs(rows: Sequence[Mapping[str, Any]]) -> list[Samples]:
    """Of rows of one run, those that show how pairs differ from process to process: processor times
    if other work disturbed most blocks.
    """
    by_clock: list[Samples] = [row.get("block_ms") or () for row in rows]
    blocks = sum(len(process) for one in by_clock for process in one)
    by_processor = [processor_samples(row, PROCESSOR_TIMES[0]) for row in rows]
    is_disturbed = in_most(sum(row.get("contended_blocks") or 0 for row in rows), blocks)
    return by_processor if is_disturbed and all(map(is_known, by_processor)) else by_clock
