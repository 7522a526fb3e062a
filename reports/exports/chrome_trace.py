"""A run over time in the Trace Event Format, for ui.perfetto.dev and chrome://tracing.

Each run is a process of the trace. Its threads are the cases, the walls and studies, what ran while
the device was sampled, and the blocks of each worker; its counters are the sampler's readings.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from math import inf
from typing import Any

from ...harness.files.printable import visible
from ..data.read import Document, Run
from ..data.run_meta import device_name, not_reached
from ..data.telemetry import telemetry
from ..formatting import plural
from ..subjects._timeline import GAP_PERIODS, QUANTITIES
from . import Exported, NotExportable

MEANING = "the run over time, for ui.perfetto.dev or chrome://tracing"
CASES, OTHERS, WINDOWS, FIRST_WORKER = 1, 2, 3, 10  # threads; further workers follow
THREADS = {
    CASES: "cases, where each began",
    OTHERS: "walls and studies",
    WINDOWS: "while the device was sampled",
}
US_PER_S = 1e6

Event = dict[str, Any]


def export(runs: Sequence[Run]) -> Exported:
    """Times are microseconds since the earliest run began.

    Raises NotExportable for shards that were merged: they ran at once, which one track cannot show.
    """
    for run in runs:
        if run.meta.get("merged"):
            raise NotExportable(
                f"{visible(str(run.meta['run']))}: merged from shards, which ran at the same time;"
                " export each of the shards"
            )
    parts = [(number, run, list(_events(run))) for number, run in enumerate(runs, start=1)]
    zero_s = min((event["ts"] for _, _, events in parts for event in events), default=0.0)
    events: list[Event] = []
    notes: list[str] = []
    for pid, run, found in parts:
        events += [{**name, "pid": pid} for name in _names(run, {event["tid"] for event in found})]
        moved = [_moved(event, pid, zero_s) for event in found]
        events += sorted(moved, key=lambda event: (event["ts"], -event.get("dur", 0)))
        notes += _not_drawn(run)
    never = [{"run": run.meta["run"], **one} for run in runs for one in _never_started(run)]
    other = {"runs": [run.meta["run"] for run in runs], "not_started": never}
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}
    return Exported(content=json.dumps(document, allow_nan=False) + "\n", notes=tuple(notes))


def _event(name: str, kind: str, tid: int, at_s: float = 0, **more: Any) -> Event:
    """`kind`: X a slice, i an instant, C a counter, M metadata; `dur` in seconds too."""
    return {"name": visible(name), "ph": kind, "tid": tid, "ts": at_s, **more}


def _moved(event: Event, pid: int, zero_s: float) -> Event:
    """The event in the trace's own time, instead of seconds since 1970."""
    times = {"ts": event["ts"] - zero_s} | {k: event[k] for k in ("dur",) if k in event}
    return {**event, "pid": pid, **{k: round(value * US_PER_S, 1) for k, value in times.items()}}


def _names(run: Run, threads: set[int]) -> Iterator[Event]:
    """Metadata: names and order of the process and its threads."""
    name = f"{visible(str(run.meta['run']))}, {visible(device_name(run.meta))}"
    yield _event("process_name", "M", 0, args={"name": name})
    for tid in sorted(threads - {0}):
        name = THREADS.get(tid) or f"worker {tid - FIRST_WORKER + 1}: blocks"
        yield _event("thread_name", "M", tid, args={"name": name})
        yield _event("thread_sort_index", "M", tid, args={"sort_index": tid})


def _events(run: Run) -> Iterator[Event]:
    """Events with `ts` and `dur` in seconds, `ts` since 1970."""
    for row in run.rows:
        yield from _case(row)
    for one in (*run.walls, *run.studies):
        if (began_s := _unix_s(one.get("started_utc"))) is not None:
            end = {"cat": one["kind"], "args": _end(one), "dur": one.get("spent_s") or 0.0}
            yield _event(one["case"], "X", OTHERS, began_s, **end)
    yield from _sampled(run)


def _case(row: Document) -> Iterator[Event]:
    """The begin of the case as an instant, as its phases alternate with other cases; its blocks."""
    if (began_s := _unix_s(row.get("started_utc"))) is not None:
        args = {**_end(row), "spent_s": row.get("spent_s"), "peak_bytes": row.get("peak_bytes")}
        name = row["case"] if row["status"] == "ok" else f"{row['status']}: {row['case']}"
        yield _event(name, "i", CASES, began_s, cat=row["status"], s="t", args=args)
    for process, blocks in enumerate(row.get("conditions") or []):
        for number, block in enumerate(blocks):
            if "started_unix_s" in block and block.get("wall_s", -1) >= 0:
                yield _event(
                    row["case"],
                    "X",
                    FIRST_WORKER + process,
                    block["started_unix_s"],
                    dur=block["wall_s"],
                    cat=visible(row["backend"]),
                    args={"block": number, **block},
                )


def _sampled(run: Run) -> Iterator[Event]:
    """What ran while the device was sampled, as slices, and the sampler's readings."""
    found = telemetry(run.path)
    period_s = found.period_s or inf
    segment, last_s = 0, -inf
    numbered = []
    for sample in found.samples:
        if (moment_s := _unix_s(sample["utc"])) is None:
            continue
        segment += not 0 <= moment_s - last_s <= GAP_PERIODS * period_s
        last_s = moment_s
        numbered.append(((segment, sample["what"]), moment_s))
        for quantity in QUANTITIES.get(sample["kind"], ()):
            if (value := sample[quantity.column]) is not None:
                args = {quantity.column: value}
                yield _event(quantity.column, "C", 0, moment_s, args=args)
    for (_, what), group in groupby(numbered, key=lambda pair: pair[0]):
        times = [moment_s for _, moment_s in group]
        took_s = times[-1] - times[0]
        yield _event(what, "X", WINDOWS, times[0], dur=took_s, cat="sampled", args={})


def _end(one: Document) -> dict[str, Any]:
    """How it ended."""
    reason, attempt = visible(one["reason"]), one.get("attempt")
    return {"status": one["status"], "reason": reason, "attempt": attempt}


def _unix_s(stamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (TypeError, ValueError):
        return None


def _never_started(run: Run) -> list[dict[str, Any]]:
    """Cases that never started, such as those predicted not to fit."""
    found = [row for row in run.rows if _unix_s(row.get("started_utc")) is None]
    never = [*found, *({"case": case["case"], **not_reached()} for case in run.missing)]
    return [{name: row[name] for name in ("case", "status", "reason")} for row in never]


def _not_drawn(run: Run) -> Iterator[str]:
    if never := len(_never_started(run)):
        yield (
            f"{run.meta['run']}: {plural(never, 'case')} never started; the trace lists them under"
            " otherData, with their reasons"
        )
    conditions = (process for row in run.rows for process in row.get("conditions") or [])
    dated = any("started_unix_s" in block for process in conditions for block in process)
    if not dated and any(row.get("block_ms") for row in run.rows):
        yield (
            f"{run.meta['run']}: measured before attnbench kept when a block began; no block is in"
            " the trace"
        )
