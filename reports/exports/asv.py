"""Result files of asv (airspeed velocity) for one commit, as a zip to unpack into `results_dir`.

A problem is a benchmark whose parameter is the backend. asv decides by intervals where a result has
no samples: it gets attnbench's, and no samples, since it would take calls as independent.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median
from typing import Any

import numpy as np

from ...harness.files.printable import visible
from ..data.read import Document, Run
from ..data.row_groups import Row
from ..data.run_meta import device_name
from . import Exported, NotExportable
from ._speeds import Speed, left_out, one_machine, speeds
from ._zipped import zipped

MEANING = "what `asv compare` and `asv publish` read, of one commit, as a zip"
BY_COMMIT = True
RESULTS, BENCHMARKS, MACHINE = 2, 2, 1  # the versions of asv's files
METRICS = {"latency": ("time", "seconds"), "peak_bytes": ("peakmemory", "bytes")}
"""Type and unit of each."""
COLUMNS = (
    *("result", "params", "version", "started_at", "duration"),
    *("stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75", "stats_number", "stats_repeat"),
)
VERSION = "1"  # of a benchmark: asv leaves out results of others
MS_PER_S = 1e3


def export(runs: Sequence[Run]) -> Exported:
    """`commit` of a run's settings: its `id`, and when it was `committed_s`, in Unix time."""
    timed, untimed = speeds(runs)
    meta = runs[0].meta
    if "commit" not in meta:
        raise NotExportable(
            "asv: no commit, and its results are of one; give --commit HEAD, or another commit of"
            " your project, in the project's folder"
        )
    one_machine([(_machine(run.meta), _versions(run.meta)) for run in runs])
    machine, versions, commit = _machine(meta), _versions(meta), meta["commit"]
    environment = "-".join(f"{name}{versions[name]}" for name in ("python", "torch"))
    benchmarks = {
        f"{name}.{metric}": (metric, rows)
        for name, rows in _problems(timed).items()
        for metric in METRICS
    }
    document = {
        "version": RESULTS,
        "commit_hash": commit["id"],
        "date": round(commit["committed_s"] * MS_PER_S),
        "env_name": environment,
        "params": {**machine, **versions},
        "python": versions["python"],
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": {name: _result(*one) for name, one in benchmarks.items()},
        "durations": {},
    }
    described = {name: _benchmark(name, *one) for name, one in benchmarks.items()}
    files = {
        f"{machine['machine']}/{commit['id'][:8]}-{environment}.json": document,
        f"{machine['machine']}/machine.json": {**machine, "version": MACHINE},
        "benchmarks.json": {**described, "version": BENCHMARKS},
    }
    texts = {path: json.dumps(one, indent=1, allow_nan=False) + "\n" for path, one in files.items()}
    return Exported(content=zipped(texts), notes=tuple(left_out(untimed)))


def _problems(timed: Sequence[Speed]) -> dict[str, dict[str, Row]]:
    """Scenario and problem, each with the rows of its backends."""
    found: dict[str, dict[str, Row]] = {}
    for one in timed:
        backend = visible(one.row["backend"])
        name = f"{one.scenario}.{one.case.removeprefix(f'{backend}-')}"
        found.setdefault(name, {})[backend] = one.row
    return found


def _result(metric: str, rows: Mapping[str, Row]) -> list[Any]:
    """A row of a results file: a value per backend in each of COLUMNS; null if not measured."""
    if metric == "peak_bytes":
        return [[row["peak_bytes"] for row in rows.values()], [[*rows]], VERSION]
    bounds = [
        [_seconds(row[name]) for row in rows.values()]
        for name in ("latency_ms", "latency_low_ms", "latency_high_ms")
    ]
    blocks = [
        [median(block) for block in chain.from_iterable(row["block_ms"]) if block]
        for row in rows.values()
    ]
    quarters = [np.quantile(some, (0.25, 0.75)) / MS_PER_S for some in blocks]
    return [
        *(bounds[0], [[*rows]], VERSION, None, None, *bounds[1:]),
        *([float(low) for low, _ in quarters], [float(high) for _, high in quarters]),
        *(None, [len(some) for some in blocks]),
    ]


def _benchmark(name: str, metric: str, rows: Mapping[str, Row]) -> dict[str, Any]:
    """Of benchmarks.json."""
    kind, unit = METRICS[metric]
    return {
        "name": name,
        "type": kind,
        "unit": unit,
        "params": [[*rows]],
        "param_names": ["backend"],
        "version": VERSION,
        "code": "",
        "timeout": None,
    }


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / MS_PER_S


def _versions(meta: Document) -> dict[str, str]:
    """What numbers depend on beside machine and commit; asv draws a line for each value."""
    names = ("python", "torch", "threads", "driver", "cuda")
    return {name: visible(str(meta["environment"].get(name) or "")) for name in names}


def _machine(meta: Document) -> dict[str, str]:
    """With asv's keys. `machine` is the name of a folder."""
    known = meta["environment"]
    facts = {"os": "system", "cpu": "cpu", "num_cpu": "cores", "ram": "host_memory_bytes"}
    name = re.sub(r"[^\w.]+", "-", device_name(meta)).strip("-.")
    found = {key: visible(str(known.get(fact) or "")) for key, fact in facts.items()}
    return {"machine": name, "arch": "", **found}
