"""The command that measures one case of a run again, under the same plan and limits."""

import shlex
from collections.abc import Mapping
from typing import Any

from ..data.row_groups import Row
from ..data.run_meta import plan_of

# The named plans, so that the command has only the differences; a test compares them with the
# harness.
_BLOCKS = ("processes", "min_blocks", "max_blocks")
_FIELDS = (*_BLOCKS, "precision_ratio", "budget_s", "windows", "window_s")
_VALUES = {
    "quick": (1, 6, 11, 0.05, 2.0, 1, 2.0),
    "standard": (5, 2, 6, 0.03, 10.0, 3, 6.0),
    "rigorous": (10, 3, 15, 0.01, 60.0, 5, 6.0),
}
PLANS: dict[str, dict[str, Any]] = {
    name: dict(zip(_FIELDS, values, strict=True)) for name, values in _VALUES.items()
}
USUAL_ALLOCATOR = "warm_heap"
USUAL_LIMITS = {"timeout_s": 60.0, "memory_gib": None}
USUAL_MEASURE = ["latency", "memory"]
USUAL_PASSES, USUAL_SCOPE = "forward", "core"


def command(row: Row, run: Mapping[str, Any]) -> str:
    """For a shell; several environments: by the case's own interpreter. `run`: its run.json."""
    words = [*_program(row, run), "run", *_axes(row), "--device", row["device"], *_settings(run)]
    if isinstance(seed := run.get("seed"), int) and seed:
        words += ["--seed", str(seed)]
    return shlex.join(map(str, words))


def _program(row: Row, run: Mapping[str, Any]) -> list[str]:
    paths = {one["name"]: one["path"] for one in run.get("environments") or []}
    path = paths.get(row.get("python"))
    return ["attnbench"] if path is None else [path, "-m", "attnbench"]


def _axes(row: Row) -> list[Any]:
    """The problem as flags, without sizes that follow another one."""
    n, d, h = row["seq_len"], row["d_model"], row["heads"]
    flags = ["--backends", row["backend"], "--batch", row["batch"], "--seq-len", n]
    flags += [] if row["kv_seq_len"] == n else ["--kv-seq-len", row["kv_seq_len"]]
    flags += ["--d-model", d, "--heads", h]
    flags += [] if row["kv_heads"] == h else ["--kv-heads", row["kv_heads"]]
    flags += ["--dtype", row["dtype"]]
    flags += ["--causal"] if row["causal"] else []
    flags += [] if row["mask"] == "none" else ["--mask", row["mask"]]
    flags += ["--window", row["window"]] if row["window"] else []
    flags += [] if row["passes"] == USUAL_PASSES else ["--passes", row["passes"]]
    flags += [] if row["scope"] == USUAL_SCOPE else ["--scope", row["scope"]]
    sets = {f"grid.{width}": row[width] for width in ("d_k", "d_v") if row[width] * h != d}
    sets |= (
        {"grid.causal_align": row["causal_align"]}
        if row["causal"] and row["kv_seq_len"] != n
        else {}
    )
    return [*flags, *_sets(sets)]


def _settings(run: Mapping[str, Any]) -> list[Any]:
    """The settings of the run that are not the defaults; old runs lack newer settings."""
    plan = plan_of(run)
    limits, measure = (run["scenario"].get(name) for name in ("limits", "measure"))
    flags: list[Any] = []
    sets: dict[str, Any] = {}
    if (like := plan.get("like")) in PLANS:
        flags += ["--plan", like]
        usual = PLANS[like] | {"allocator": USUAL_ALLOCATOR}
        sets |= {
            f"plan.{name}": value
            for name, value in plan.items()
            if name in usual and value != usual[name]
        }
    if isinstance(limits, dict):
        sets |= {
            f"limits.{name}": limits[name]
            for name, usual in USUAL_LIMITS.items()
            if name in limits and limits[name] != usual
        }
    if isinstance(measure, list) and measure != USUAL_MEASURE:
        sets["measure"] = f"[{', '.join(map(str, measure))}]"
    return [*flags, *_sets(sets)]


def _sets(changes: Mapping[str, Any]) -> list[str]:
    return [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
