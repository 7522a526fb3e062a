"""The JSON of pytest-benchmark, for `pytest-benchmark compare` and whatever else reads it: a call
is a round of one iteration.
"""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ..comparison.case_samples import SENSIBLE
from ..data.read import Document, Run
from ..data.row_groups import Row, label, problem, unusual
from ..formatting import visible
from . import Exported, NotExportable
from ._speeds import Timed, left_out, speeds

MEANING = "what `pytest-benchmark compare` reads"
PARAMS = (
    "backend",
    "batch",
    "seq_len",
    "kv_seq_len",
    "d_model",
    "heads",
    "kv_heads",
    "dtype",
    "causal",
    "passes",
    "scope",
)
EXTRA = (
    *(
        "latency_ms",
        "latency_low_ms",
        "latency_high_ms",
        "latency_note",
        "processes",
        "blocks",
        "stop",
        "peak_bytes",
        "input_bytes",
    ),
    *(
        "predicted_peak_bytes",
        "work_flops",
        "error_ratio",
        "kernel",
        "contended_blocks",
        "throttled_blocks",
    ),
)
MS_PER_S = 1e3


def export(runs: Sequence[Run]) -> Exported:
    """Cases without a latency stand under `attnbench`, where pytest-benchmark does not look: a
    benchmark of its format has numbers.
    """
    from pytest_benchmark import __version__

    timed, silent = speeds(runs)
    machines = [_machine(run.meta) for run in runs]
    if any(machine != machines[0] for machine in machines):
        raise NotExportable(
            "the runs come from different machines or versions, and a file of this format has one;"
            " export each by itself"
        )
    document = {
        "machine_info": machines[0],
        "commit_info": _commit(runs[0].meta),
        "benchmarks": [_benchmark(one) for one in timed],
        "datetime": visible(str(runs[0].meta.get("started_utc", ""))),
        "version": __version__,
        "attnbench": {
            "runs": [run.meta["run"] for run in runs],
            "left_out": [
                {"fullname": _fullname(s.scenario, s.case), "status": s.status, "reason": s.reason}
                for s in silent
            ],
        },
    }
    return Exported(
        content=json.dumps(document, indent=1, allow_nan=False) + "\n",
        notes=tuple(left_out(silent)),
    )


def _benchmark(one: Timed) -> dict[str, Any]:
    from pytest_benchmark.stats import Stats

    row, stats = one.row, Stats()
    for call_ms in chain.from_iterable(chain.from_iterable(row["block_ms"])):
        if not SENSIBLE[0] < call_ms < SENSIBLE[1]:
            raise NotExportable(
                f"{one.case}: block_ms: a sample is no time that a clock could have read"
            )
        stats.update(call_ms / MS_PER_S)
    plan = one.meta["scenario"].get("plan")
    return {
        "group": f"{one.scenario}: {label(_problem(row)).replace(chr(0xA0), ' ')}",
        "name": one.case,
        "fullname": _fullname(one.scenario, one.case),
        "params": {name: _inert(row[name]) for name in PARAMS},
        "param": one.case,
        "extra_info": {name: _inert(row[name]) for name in EXTRA},
        "options": {
            "timer": "cuda events" if row["device"] == "cuda" else "perf_counter_ns",
            "disable_gc": True,
            "warmup": True,
            "max_time": plan.get("budget_s") if isinstance(plan, dict) else None,
        },
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": 1},
    }


def _problem(row: Row) -> Row:
    """What the backends of one group have in common."""
    return {axis: value for axis, value in unusual(problem(row)).items() if axis != "device"}


def _fullname(scenario: str, case: str) -> str:
    """As a test's: the same in every run, so that runs can be compared."""
    return f"{scenario}.yaml::{case}"


def _machine(meta: Document) -> dict[str, Any]:
    """pytest-benchmark's keys where we know them; what a number depends on besides stands under
    `attnbench`.
    """
    known = meta["environment"]
    return {
        "system": _inert(known.get("system")),
        "python_version": _inert(known.get("python")),
        "cpu": {"brand_raw": _inert(known.get("cpu")), "count": known.get("cores")},
        "attnbench": {
            name: _inert(known.get(name))
            for name in ("device_name", "driver", "cuda", "cudnn", "torch", "threads", "attnbench")
        },
    }


def _commit(meta: Document) -> dict[str, Any]:
    """Of attnbench itself, where it ran from a checkout; nobody looked whether that was clean."""
    return {"id": _inert(meta["environment"].get("git")), "project": "attnbench"}


def _inert(value: Any) -> Any:
    """pytest-benchmark prints it into terminals."""
    return visible(value) if isinstance(value, str) else value
