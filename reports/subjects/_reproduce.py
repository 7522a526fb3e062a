"""Commands for a shell, from the files of a run: to measure a case again, and what was typed.

Who wrote the files is not known. So a command starts `attnbench` and nothing else, names no other
program, permits no import, and is quoted.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...harness.rows.model import AXES
from ...harness.rows.plans import PLANS
from ..data.row_groups import Row
from ..data.run_meta import plan_of

USUAL_ALLOCATOR = "warm_heap"
USUAL_LIMITS = {"timeout_s": 60.0, "memory_gib": None}
USUAL_MEASURE = ["latency", "memory"]
ALWAYS = ("batch", "dtype")  # said even where they are what they are without being said


PROGRAMS = ("--python", "--base-python")
PERMISSION = "--allow-import"
LEFT_OUT = "  # its programs and --allow-import are left out: give them again if you trust them"
UNPRINTABLE = "(not shown: it has characters that cannot be printed)"
FROM_PYTHON = re.compile(r"attnbench\.(run|open_run)\('[\w.:-]*'\)(\.resume\(\))?", re.ASCII)


def command(row: Row, run: Mapping[str, Any]) -> str:
    """Measures the case again, under the same plan and limits. `run`: its run.json."""
    words = ["attnbench", "run", *_axes(row), "--device", row["device"], *_settings(run)]
    if isinstance(seed := run.get("seed"), int) and seed:
        words += ["--seed", str(seed)]
    return _joined([*map(str, words)])


def typed(words: object) -> str | None:
    """The command of run.json, without programs and permissions; None if it is none of ours."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    if len(words) == 1 and FROM_PYTHON.fullmatch(words[0]):
        return str(words[0])
    if words[:1] == ["pytest"]:
        return "pytest"  # its options can name plugins
    if words[:1] != ["attnbench"]:
        return None
    safe = [*_without_programs(words)]
    return _joined(safe) + (LEFT_OUT if safe != words else "")


def _without_programs(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        option, equals, _ = word.partition("=")
        if option in PROGRAMS and not equals:
            next(rest, None)
        elif option not in (*PROGRAMS, PERMISSION):
            yield word


def _joined(words: Sequence[str]) -> str:
    return shlex.join(words) if all(word.isprintable() for word in words) else UNPRINTABLE


def _axes(row: Row) -> list[Any]:
    """The problem as flags, without sizes that follow another one."""
    flags, sets = ["--backends", row["backend"]], {}
    for name, axis in AXES.items():
        value = row[name]
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
