"""Several runs of one side as the rows of one: measured in turns with those of the other, or before
it.
"""

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, median, median_low
from typing import Any

from ...harness.stats.contrasts import Spread, spread
from ...harness.stats.intervals import Samples, latency_interval
from ..data.row_groups import LoadedRow, Row, by
from ..data.run_meta import NOT_REACHED
from ..judging.pair import TURNS, energies

FEWEST = 4
"""Earlier runs: by three, equal runs were told apart in 5.0 % of 500 simulated comparisons, by four
or more in 1.6 to 3.0 %.
"""
SUMS = ("blocks", "contended_blocks", "throttled_blocks")
TYPICAL = ("peak_bytes", "workspace_bytes", "processor_ms")


def merged(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """A unit of a row stands for a run, so that a turn is a unit.

    Slow drift (a neighbour on the host, heat) affects both runs of a turn equally. What changes
    between the two differs from turn to turn, so it widens the interval. A case that failed in some
    run is its first failure; one that some run lacks was not reached.
    """
    by_case = by((row for run in runs for row in run), lambda row: str(row["case"]))
    return [
        _merged(rows)
        if len(rows) == len(runs)
        else rows[0] | {"status": NOT_REACHED, "reason": "not in every run of its side"}
        for rows in by_case.values()
    ]


def _merged(rows: Sequence[Row]) -> Row:
    if failed := [row for row in rows if row["status"] != "ok"]:
        return failed[0]
    block_ms = _values([row.get("block_ms") or () for row in rows])
    windows = [
        {"way": "eager", "process": run, "energy_j": energy_j, "calls": 1}
        for run, ((energy_j,),) in enumerate(_values([energies(row) for row in rows]))
    ]
    return rows[0] | {
        "session": TURNS,
        "merged_runs": len(rows),
        "block_ms": block_ms,
        "latency_ms": latency_interval(block_ms).value if block_ms else None,
        "windows": windows,
        "conditions": [[block for process in _clocks(row) for block in process] for row in rows],
        **{name: _typical(rows, name) for name in TYPICAL},
        **{name: sum(row.get(name) or 0 for row in rows) for name in SUMS},
    }


def _clocks(row: Row) -> Sequence[Sequence[dict[str, Any]]]:
    """Of blocks, without their processor times: those stand for blocks, not for runs."""
    return [
        [{"sm_clock_mhz": block.get("sm_clock_mhz")} for block in process]
        for process in row.get("conditions") or []
    ]


def _typical(rows: Sequence[Row], name: str) -> Any:
    """A number that some run has; None unless all have it."""
    known = [row[name] for row in rows if row.get(name) is not None]
    return median_low(known) if len(known) == len(rows) else None


def _values(runs: Sequence[Samples]) -> Samples:
    """One value per run, the geometric mean of its processes' medians; empty if a run has none."""

    def logs_of(run: Samples) -> list[float]:
        measured = ([block for block in process if block] for process in run)
        return [median(log(median(block)) for block in some) for some in measured if some]

    logs = [*map(logs_of, runs)]
    return tuple(((exp(fmean(run)),),) for run in logs) if all(logs) else ()


def beside(row: Row, earlier: Row | None) -> Row:
    """With what the earlier runs of its case differ by in place of what the device's do. A new run
    draws that once more; as one estimate gives it and the error of their mean, both together have
    the degrees of freedom of that (Satterthwaite).
    """
    units = [process[0][0] for process in (earlier or {}).get("block_ms") or ()]
    learnt = spread([[log(ms) for ms in units]])
    if learnt is None:
        return row
    one = Spread(sd=learnt.sd / sqrt(2), degrees=learnt.degrees / (1 + 2 / len(units)))
    noise = {"between_runs_ratio": one.ratio, "between_runs_degrees": one.degrees}
    return LoadedRow(row | noise)
