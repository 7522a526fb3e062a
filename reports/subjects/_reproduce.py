"""The command that measures a case again, from the files of a run."""

from collections.abc import Mapping
from typing import Any

from ...harness.rows.model import AXES
from ...harness.rows.plans import PLANS
from ..data.row_groups import Row
from ..data.run_meta import plan_of
from ..data.typed import joined

USUAL_SETTINGS = {"allocator": "warm_heap", "caches": "warm"}
USUAL_LIMITS = {"timeout_s": 60.0, "memory_gib": None}
USUAL_MEASURE = ["latency", "memory"]
ALWAYS = ("batch", "dtype")  # said even where they are what they are without being said


def command(row: Row, run: Mapping[str, Any]) -> str:
    """Measures the case again, under the same plan and limits. `run`: its run.json."""
    words = ["attnbench", "run", *_axes(row), "--device", row["device"], *_settings(run)]
    if isinstance(seed := run.get("seed"), int) and seed:
        words += ["--seed", str(seed)]
    return joined([*map(str, words)])


def _axes(row: Row) -> list[Any]:
    """The problem as flags, without sizes that follow another one."""
    flags, sets = ["--backends", row["backend"]], {}
    for name, axis in AXES.items():
        value = row.get(name)
        usual = axis.usual(row) if axis.usual else axis.given
        if not value or (value == usual and name not in ALWAYS):
            continue
        if not axis.option:
            sets[f"grid.{name}"] = value
        else:
            option = f"--{name.replace('_', '-')}"
            flags += [option] if value is True else [option, value]
    return [*flags, *_sets(sets)]


def _settings(run: Mapping[str, Any]) -> list[Any]:
    """The settings of the run that are not the defaults; old runs lack newer settings."""
    plan = plan_of(run)
    limits, measure = (run["scenario"].get(name) for name in ("limits", "measure"))
    has_windows = isinstance(measure, list) and bool({*measure} - {*USUAL_MEASURE})
    flags: list[Any] = []
    sets: dict[str, Any] = {}
    if (like := plan.get("like")) in PLANS:
        flags += ["--plan", like]
        usual = PLANS[like] | USUAL_SETTINGS
        sets |= {
            f"plan.{name}": value
            for name, value in plan.items()
            if name in usual and value != usual[name] and (has_windows or name != "window_s")
        }
    if isinstance(limits, dict):
        sets |= {
            f"limits.{name}": limits[name]
            for name, usual in USUAL_LIMITS.items()
            if name in limits and limits[name] != usual
        }
    if isinstance(measure, list) and measure != USUAL_MEASURE:
        flags += ["--measure", ",".join(map(str, measure))]
    return [*flags, *_sets(sets)]


def _sets(changes: Mapping[str, Any]) -> list[str]:
    return [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
