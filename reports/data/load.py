"""Runs as rows: one per case, a field per quantity, None if it was not measured."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, hypot, isnan, log, nan
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from ...harness.files.printable import visible
from ...harness.stats.contrasts import Spread
from ...harness.stats.intervals import CONFIDENCE, Interval, latency_interval, t_quantile
from .beside import baseline_of, blocks_of, has_baseline, link
from .columns import COLUMNS, DTYPES, NUMBER, YES_NO, dtype_of
from .exactness import is_exact
from .memory_need import needed_bytes
from .noise_floor import process_noise, spread_of_pairs, spread_of_runs_like
from .peaks import traffic
from .processor_time import (
    PROCESSOR_TIMES,
    is_known,
    processor_samples,
    samples_of_pairs,
    typical_ms,
)
from .row_groups import LoadedRow, Row
from .run_meta import Run, not_reached, read_runs, run_names

if TYPE_CHECKING:
    import pandas as pd

_NOT_SHOWN = {"schema", "kind", "group", "replica_of"}  # bookkeeping of the file, not of the case
_FORMER = {"meta_peak_bytes", "meta_reason"}  # of rows before 1.0
_PLAIN = {NUMBER: float, YES_NO: bool}  # of what numpy computed, and of whole numbers
LAUNCH_BOUND_RATIO = 1.1  # of wall to CUDA graph latency; above it launching is more than noise
PUBLISHED = "published: one number"
_NOT_AVERAGED = {"process", "way", "window_s", "calls", "energy_j"}  # columns of a window


def load(run: str | Path | Sequence[str | Path], *, salvage: bool = False) -> "pd.DataFrame":
    """`attnbench.load`, without its checks of arguments. Raises BadRun."""
    folders = [run] if isinstance(run, str | Path) else run
    return frame_of(read_runs(folders, salvage=salvage), several=folders is run)


def frame_of(runs: Sequence[Run], *, several: bool) -> "pd.DataFrame":
    """The table of runs that were read. `several`: with the column `run`."""
    rows = rows_of(runs)
    return as_frame(rows, columns_of(rows), DTYPES, None if several else runs[0])


def as_frame(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    kinds: Mapping[str, str],
    run: Run | None = None,
) -> "pd.DataFrame":
    """Rows as a frame. `kinds`: the columns' types; of others their values say it. `run`: the one
    that all are of: in `attrs`, in place of a column.
    """
    import pandas as pd  # half a second, which pages do without

    series = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        series[name] = pd.Series(values, dtype=kinds.get(name) or dtype_of(values))
    frame = pd.DataFrame(series)
    if run is None:
        return frame
    frame.attrs = {"run": run.meta["run"]}
    return frame.drop(columns="run", errors="ignore")


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """The same of runs that were read, as dictionaries that all have the same fields, `run` too."""
    records = [
        {"run": name, **record, **noise}
        for name, run in zip(run_names(runs), runs, strict=True)
        for noise, of_latencies in [_noise(runs, run)]
        for record in _records(run, of_latencies)
    ]
    # Columns of probes come after the columns that every run has.
    extra = sorted(
        {
            name
            for record in records
            for name, value in record.items()
            if not isinstance(value, list | dict)
        }
        - {"run", *_NOT_SHOWN, *_FORMER, *COLUMNS}
    )
    rows = [
        LoadedRow(
            {"run": record["run"]}
            | {name: _known(record.get(name), one.dtype) for name, one in COLUMNS.items()}
            # A column's name must be text that can be encoded, whatever the file holds.
            | {visible(name): _known(record.get(name)) for name in extra}
        )
        for record in records
    ]
    link(rows)
    return [*rows]


def columns_of(rows: Sequence[Row]) -> list[str]:
    return list(rows[0]) if rows else ["run", *COLUMNS]


def _known(value: Any, dtype: str = "") -> Any:
    """None if it is missing, and for lists of a column that we do not know."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    if not dtype and isinstance(value, list | dict):
        return None
    return _PLAIN[dtype](value) if dtype in _PLAIN else value


def _noise(runs: Sequence[Run], run: Run) -> tuple[dict[str, Any], Spread | None]:
    """How much processes, runs and pairs differ on a run's device: what marks have to allow for.
    And what intervals of latencies do: without a check, by the runs of its scenario beside it. Of
    those one may be of other code, which a comparison of two runs must not take for noise.
    """
    noise, floor = process_noise(runs, run)
    between_runs = floor.between_runs if floor is not None else None
    timed = [row for row in run.rows if row["status"] == "ok"]
    timed += [baseline_of(row) for row in timed if has_baseline(row)]
    pairs = spread_of_pairs(
        (row["case"], blocks_of(row), samples)
        for row, samples in zip(timed, samples_of_pairs(timed), strict=True)
    )
    fields = {
        "process_noise_ratio": noise.spread.ratio,
        "process_noise_degrees": noise.spread.degrees,
        "process_noise_source": noise.source,
        "between_runs_ratio": nan if between_runs is None else between_runs.ratio,
        "between_runs_degrees": nan if between_runs is None else between_runs.degrees,
        "pair_noise_ratio": nan if pairs is None else pairs.ratio,
        "pair_noise_degrees": nan if pairs is None else pairs.degrees,
    }
    return fields, between_runs or spread_of_runs_like(run)


def _records(run: Run, between_runs: Spread | None) -> list[dict[str, Any]]:
    order = {case["case"]: place for place, case in enumerate(run.meta["cases"])}
    reached = [
        row
        | {"window": row["window"] or None}
        | _latency(row, run.meta, between_runs)
        | _temporary(row)
        | _windows(row)
        | {f"parameter_{name}": value for name, value in (row["parameters"] or {}).items()}
        for row in run.rows
    ]
    records = reached + [
        {"device": run.meta["device"], **case, "window": case["window"] or None, **not_reached()}
        for case in run.missing
    ]
    return sorted(records, key=lambda record: order.get(record["case"], len(order)))


def _latency(
    row: dict[str, Any], run: Mapping[str, Any], between_runs: Spread | None
) -> dict[str, Any]:
    """Latency with its interval: of what a further run would show, where it is known how much runs
    differ here, else of this run. Only the counts if the case is not ok: it has no speed.
    """
    blocks = [block for process in row.get("block_ms") or [] for block in process]
    counts = (
        {"blocks": len(blocks), "samples": sum(map(len, blocks))}
        if row.get("block_ms") is not None
        else {}
    )
    if row["status"] != "ok" or row.get("block_ms") is None:
        return counts
    interval = latency_interval(row["block_ms"])
    if run.get("source"):
        interval = replace(interval, reason=PUBLISHED)
    has_rate = interval.value > 0 and row["work_flops"] is not None and is_exact(row)
    achieved = row["work_flops"] / (interval.value / 1000) if has_rate else nan
    return counts | {
        "latency_ms": interval.value,
        **_bounds(interval, between_runs),
        "latency_run_low_ms": interval.low,
        "latency_run_high_ms": interval.high,
        "latency_note": interval.reason,
        "processor_ms": _processor_ms(row),
        # work_flops counts attention, and an inexact backend does other work.
        "achieved_flops_per_s": achieved,
        "papers_flops_per_s": achieved * _papers_ratio(row),
        **_bandwidth(row, run, interval),
        **_other_latencies(row),
        "minor_faults_per_call": _minor_faults_per_call(row),
    }


def _bounds(interval: Interval, between_runs: Spread | None) -> dict[str, Any]:
    """Of the latency, and over what they reach. Both errors are independent."""
    value, low, high = interval.value, interval.low, interval.high
    reach = "this run"
    if between_runs is not None and low > 0:
        apart = t_quantile(between_runs.degrees, (1 + CONFIDENCE) / 2) * between_runs.sd
        low = value / exp(hypot(log(value / low), apart))
        high = value * exp(hypot(log(high / value), apart))
        reach = "between runs"
    return {"latency_low_ms": low, "latency_high_ms": high, "latency_reach": reach}


def _papers_ratio(row: dict[str, Any]) -> float:
    """FLOPs as papers count them over ours: a backward pass has a fifth product there, which makes
    the scores again. NaN without a backward pass, and of layers, which have other products too.
    """
    counted = {"backward": 2, "forward+backward": 3}.get(row["passes"])
    if counted is None or row["scope"] != "core":
        return nan
    return float(1 + row["d_k"] / (counted * (row["d_k"] + row["d_v"])))


def _processor_ms(row: dict[str, Any]) -> float:
    """Of a typical call in all threads; NaN where it does not hold in half of the blocks."""
    samples = processor_samples(row, PROCESSOR_TIMES[0])
    return typical_ms(samples) if is_known(samples) else nan


def _bandwidth(row: dict[str, Any], run: Mapping[str, Any], latency_ms: Interval) -> dict[str, Any]:
    """Of a decode step: bytes over time, also as a share of the measured memory bandwidth."""
    moved = traffic(row, run)
    if moved is None:
        return {}
    rate = moved.rate(latency_ms)
    share, per_s = rate.share, rate.bytes_per_s
    return {
        "decode_bytes_per_s": per_s.value,
        "decode_low_bytes_per_s": per_s.low,
        "decode_high_bytes_per_s": per_s.high,
        "decode_bandwidth_ratio": share.value if share else nan,
        "decode_bandwidth_low_ratio": share.low if share else nan,
        "decode_bandwidth_high_ratio": share.high if share else nan,
        "decode_fits_in_cache": moved.fits_in_cache,
        "decode_bandwidth_note": rate.note,
    }


def _other_latencies(row: dict[str, Any]) -> dict[str, Any]:
    """The other latencies of a call on a GPU, and whether it is launch-bound; missing on a CPU."""
    found = {
        f"{what}_latency_ms": latency_interval(row.get(f"{what}_block_ms") or []).value
        for what in ("wall", "hot", "graph")
    }
    ratio = found["wall_latency_ms"] / found["graph_latency_ms"]
    return {**found, "launch_bound": None if isnan(ratio) else ratio > LAUNCH_BOUND_RATIO}


def _minor_faults_per_call(row: dict[str, Any]) -> float:
    """NaN unless every block has the count."""
    blocks = [block for process in row.get("conditions") or [] for block in process]
    if not all("calls" in block and "minor_faults" in block for block in blocks):
        return nan
    calls = sum(block["calls"] for block in blocks)
    return float(sum(block["minor_faults"] for block in blocks) / calls) if calls > 0 else nan


def _temporary(row: dict[str, Any]) -> dict[str, Any]:
    """Bytes alive at the peak that are not output, and what the case needs in all."""
    peak, output = row.get("peak_bytes"), row.get("output_bytes")
    known = {} if peak is None or output is None else {"temporary_bytes": peak - output}
    return known | {"needed_bytes": needed_bytes(row)}


def _windows(row: dict[str, Any]) -> dict[str, Any]:
    """Means over the eager windows of every probe's columns; and energy per call and per token."""
    windows = [window for window in row.get("windows") or [] if window["way"] == "eager"]
    names = dict.fromkeys(name for window in windows for name in window)
    means = {
        name: _mean(window.get(name) for window in windows)
        for name in names
        if name not in _NOT_AVERAGED and name not in row
    }
    energy_j = _mean(
        window["energy_j"] / window["calls"]
        for window in windows
        if window.get("energy_j") is not None
    )
    tokens = row["batch"] * row["seq_len"]
    return means | {
        "energy_per_call_j": energy_j,
        "energy_per_token_j": energy_j / tokens if tokens else nan,
    }


def _mean(values: Iterable[Any]) -> float:
    """NaN without any number."""
    known = [value for value in values if type(value) in (int, float)]
    return mean(known) if known else nan
