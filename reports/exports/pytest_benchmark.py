"""The JSON of pytest-benchmark; a call is a round of one iteration."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any

from ...harness.files.printable import visible
from ...harness.rows.model import AXES
from ...harness.rows.run_files import Document
from ..data.row_groups import Row, label, problem, unusual
from ..data.run_meta import Run, plan_of
from ..judging.pair import PLAUSIBLE
from . import Exported, NotExportable, PackageMissing
from ._speeds import Speed, left_out, one_machine, speeds
from .csv import tidy

MEANING = "what `pytest-benchmark compare` reads; needs pytest-benchmark"
PARAMS = ("backend", *AXES)
MS_PER_S = 1e3


def export(runs: Sequence[Run]) -> Exported:
    """Cases without a latency are listed under `attnbench`, which pytest-benchmark ignores."""
    if find_spec("pytest_benchmark") is None:
        raise PackageMissing(
            "this format needs pytest-benchmark, which is not installed: pip install"
            " 'attnbench[pytest]'"
        )
    from pytest_benchmark import __version__

    timed, untimed = speeds(runs)
    columns, _ = tidy(runs)
    machines = [_machine(run.meta) for run in runs]
    one_machine(machines)
    document = {
        "machine_info": machines[0],
        # whether that checkout was clean is not known
        "commit_info": {
            "id": _safe(runs[0].meta["environment"].get("git")),
            "project": "attnbench",
        },
        "benchmarks": [_benchmark(one, columns) for one in timed],
        "datetime": visible(str(runs[0].meta.get("started_utc", ""))),
        "version": __version__,
        "attnbench": {
            "runs": [run.meta["run"] for run in runs],
            "left_out": [
                {
                    "fullname": _fullname(one.scenario, one.case),
                    "status": one.row["status"],
                    "reason": one.reason,
                }
                for one in untimed
            ],
        },
    }
    return Exported(
        content=json.dumps(document, indent=1, allow_nan=False) + "\n",
        notes=tuple(left_out(untimed)),
    )


def _benchmark(one: Speed, columns: Sequence[str]) -> dict[str, Any]:
    """`columns`: those that say more of a case than its problem stand in its extra_info."""
    from pytest_benchmark.stats import Stats

    row, stats = one.row, Stats()
    for call_ms in chain.from_iterable(chain.from_iterable(row["block_ms"])):
        if not PLAUSIBLE[0] < call_ms < PLAUSIBLE[1]:
            raise NotExportable(
                f"{one.case}: block_ms: found {call_ms:g} ms, wanted a time that a clock can read;"
                " measure the case again"
            )
        stats.update(call_ms / MS_PER_S)
    return {
        "group": f"{one.scenario}: {label(_problem(row)).replace(chr(0xA0), ' ')}",
        "name": one.case,
        "fullname": _fullname(one.scenario, one.case),
        "params": {name: _safe(row[name]) for name in PARAMS},
        "param": one.case,
        "extra_info": {name: _safe(row.get(name)) for name in columns if name not in PARAMS},
        "options": {
            "timer": "cuda events" if row["device"] == "cuda" else "perf_counter_ns",
            "disable_gc": True,
            "warmup": True,
            "max_time": plan_of(one.meta).get("budget_s"),
        },
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": 1},
    }


def _problem(row: Row) -> Row:
    """The axes that the backends of one group share."""
    return {axis: value for axis, value in unusual(problem(row)).items() if axis != "device"}


def _fullname(scenario: str, case: str) -> str:
    """Like a test's name; the same in every run."""
    return f"{scenario}.yaml::{case}"


def _machine(meta: Document) -> dict[str, Any]:
    """pytest-benchmark's keys, and other facts that numbers depend on under `attnbench`."""
    known = meta["environment"]
    return {
        "system": _safe(known.get("system")),
        "python_version": _safe(known.get("python")),
        "cpu": {"brand_raw": _safe(known.get("cpu")), "count": known.get("cores")},
        "attnbench": {
            name: _safe(known.get(name))
            for name in ("device_name", "driver", "cuda", "cudnn", "torch", "threads", "attnbench")
        },
    }


def _safe(value: Any) -> Any:
    """pytest-benchmark prints names to the terminal."""
    return visible(value) if isinstance(value, str) else value
