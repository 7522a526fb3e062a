"""What the tests of reading share: kept runs, made-up runs as docs/format.md defines them, and
Python as a user calls it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, ran
from tests.contract.conftest import run_attnbench, users_environment

REFERENCE = ROOT / "results" / "reference"  # version 0.2
APPROVED = ROOT / "tests" / "approved" / "runs"  # versions 0.1 and 0.2
QUICKSTART = REFERENCE / "cpu-20261124-quickstart"
FAILURES = APPROVED / "failures"
RUNS = [folder.parent for base in (REFERENCE, APPROVED) for folder in base.glob("*/run.json")]
SPREAD = (-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5)  # of ten processes
Problem = Mapping[str, Any]
Timed = tuple[str, Problem, Sequence[float]]  # backend, axes, the median of each process in ms


def python(script: str, *args: object, **how: Any) -> str:
    """What a script prints that a user's Python runs."""
    command = (sys.executable, "-c", script, *args)
    return ran(command, check=True, env=users_environment(), **how).stdout


def shown(*args: object) -> str:
    """What `attnbench ARGS...` prints on stdout, with exit code 0; all its spaces may break."""
    return run_attnbench(*args, check=True).stdout.replace("\u00a0", " ")


def planned_and_found(run: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """run.json, and the rows in rows.jsonl."""
    lines = (run / "rows.jsonl").read_text().splitlines() if (run / "rows.jsonl").exists() else []
    return json.loads((run / "run.json").read_text()), [json.loads(line) for line in lines]


def problem(**axes: Any) -> dict[str, Any]:
    """All sizes of a problem: those of one small one, but for `axes`."""
    plain = {
        "device": "cpu",
        "batch": 1,
        "seq_len": 256,
        "d_model": 64,
        "heads": 4,
        "dtype": "fp32",
        "causal": False,
        "causal_align": "",
        "mask": "none",
        "window": 0,
        "passes": "forward",
        "scope": "core",
    }
    full = plain | axes
    width = full["d_model"] // full["heads"]
    sizes = {
        "kv_seq_len": full["seq_len"],
        "kv_heads": full["heads"],
        "d_k": width,
        "d_v": width,
    }
    return sizes | full


def case_id(backend: str, axes: Problem) -> str:
    named = [f"{name}{value}" for name, value in axes.items()]
    return "-".join([backend, *named, "core"])


def write_run(folder: Path, timed: Sequence[Timed], **changes: Any) -> Path:
    """A finished run of version 0.1 whose cases took these times; `changes` are fields of its
    rows.
    """
    planned, (row, *_) = planned_and_found(APPROVED / "before")
    cases = []
    lines = []
    for backend, axes, medians_ms in timed:
        sizes = problem(**axes)
        name = {"case": case_id(backend, axes), "backend": backend}
        blocks = [[[median, median, median]] * 3 for median in medians_ms]
        group = case_id("group", axes)
        cases.append(name | {"group": group} | sizes)
        lines.append(
            row | name | sizes | {"block_ms": blocks, "processes": len(medians_ms)} | changes
        )
    backends = list(dict.fromkeys(backend for backend, _, _ in timed))
    scenario = planned["scenario"] | {
        "name": folder.name,
        "backends": backends,
        "baseline": backends[0],
        "contrast": [],
    }
    folder.mkdir(parents=True)
    run = planned | {"run": folder.name, "scenario": scenario, "cases": cases}
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def two_backends(folder: Path, ratio: float, spread_ratio: float = 0.003) -> Path:
    """A run of ten processes in which sdpa takes `ratio` times as long as fused: in processes of
    `spread_ratio` to either side.
    """
    base_ms = [10 * 1.002**step for step in SPREAD]
    other_ms = [
        base * ratio * (1 + spread_ratio) ** step
        for base, step in zip(base_ms, SPREAD[::2] + SPREAD[1::2], strict=True)
    ]
    return write_run(folder, [("fused", {}, base_ms), ("sdpa", {}, other_ms)])
