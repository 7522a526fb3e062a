"""A run as it was planned and as it ended, in order, and what run.json says about it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from ...harness.files.printable import visible
from ...harness.rows.run_files import (
    COMPARED_FACTS,
    META,
    BadRun,
    Document,
    read_meta,
    read_rows,
    shown_path,
)
from ..formatting import list_text, plural
from .row_groups import Row, label, unusual


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's folder.

    `rows`: the last row of every case in the order of the plan; `missing`: the planned cases
    without a row; the same for walls and studies.
    """

    path: Path
    meta: Document
    rows: list[Document]
    missing: list[Document]
    walls: list[Document]
    missing_walls: list[Document]
    studies: list[Document]
    missing_studies: list[Document]
    notes: list[str]


_FIELDS = {
    "latency": ("cases", "rows", "missing"),
    "wall": ("walls", "walls", "missing_walls"),
    "study": ("studies", "studies", "missing_studies"),
}
"""By kind of row: where run.json plans it, and the fields of a Run."""


def read_runs(paths: Sequence[str | Path], *, salvage: bool = False) -> list[Run]:
    """Raises BadRun."""
    return [read_run(path, salvage=salvage) for path in paths]


def read_run(path: str | Path, *, salvage: bool = False) -> Run:
    """`salvage`: leave out rows that cannot be read, with a note each. Raises BadRun."""
    folder = Path(path)
    if not folder.is_dir():
        found = "not a folder" if folder.exists() else "no such folder"
        raise BadRun(
            f"{shown_path(folder)}: {found}; wanted the folder of a run, with {META} in it"
        )
    notes: list[str] = []
    meta = read_meta(folder)
    last: dict[str, dict[str, Document]] = {kind: {} for kind in _FIELDS}
    other_kinds = 0
    for row in read_rows(folder, notes, salvage=salvage):
        if row["kind"] in last:
            last[row["kind"]][row["case"]] = row
        else:
            other_kinds += 1
    if other_kinds:
        notes.append(
            f"{plural(other_kinds, 'row')} of a kind other than {list_text(list(_FIELDS))} left out"
        )
    kinds: dict[str, list[Document]] = {}
    for kind, (plan, rows, missing) in _FIELDS.items():
        planned = meta.get(plan) or []
        kinds[rows], kinds[missing] = _by_plan(last[kind], planned, plan, notes)
    return Run(path=folder, meta=meta, notes=notes, **kinds)


def results_folders(run: Path) -> list[Path]:
    """Where self-checks that count for a run may be: beside it, and beside a gate's two folders."""
    beside = run.parent
    is_part = beside.name in ("base", "head")
    return [beside, beside.resolve().parent] if is_part else [beside]


def _by_plan(
    last: dict[str, Document], plan: list[Document], what: str, notes: list[str]
) -> tuple[list[Document], list[Document]]:
    """The rows in the order of the plan, then rows that are not in it; and what has no row."""
    planned = {one["case"]: one for one in plan}
    unplanned = [row for case, row in last.items() if case not in planned]
    if unplanned:
        notes.append(f"{plural(len(unplanned), 'row')} of {what} that are not in the plan")
    rows = [last[case] for case in planned if case in last] + unplanned
    return rows, [one for case, one in planned.items() if case not in last]


# ---- what run.json says --------------------------------------------------------------------------


Meta = Mapping[str, Mapping[str, Any]]  # run -> its entry of run_meta
NOT_REACHED = "not reached"
OUT_OF_MEMORY = ("oom", "predicted_oom")  # statuses of what did not fit
UNFINISHED = (NOT_REACHED, "interrupted")  # statuses of what a run lacks
ALLOCATOR, CACHES = "plan.allocator", "plan.caches"
MOST_NAMED = 3  # studies that found nothing
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def not_reached(what: str = "it started") -> dict[str, str]:
    """Status and reason of something that was planned and has no row."""
    return {"status": NOT_REACHED, "reason": f"planned; the run ended before {what}"}


def run_meta(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """run.json of each run by the run's name in the table, with these keys added.

    `path`: the run's folder. `walls`: their rows. `studies`: the findings of all
    studies, each with the name of its study. `unanswered`: the studies without findings, with the
    reason.
    """
    absent = not_reached("it was looked for")
    return {
        name: run.meta
        | {
            "path": str(run.path),
            "walls": run.walls
            + [{"device": run.meta["device"], **wall, **absent} for wall in run.missing_walls],
            "studies": [
                {"study": row["study"], **finding}
                for row in run.studies
                for finding in row["findings"]
            ],
            "unanswered": [row for row in run.studies if row["status"] != "ok"]
            + [{**one, **absent} for one in run.missing_studies],
        }
        for name, run in zip(run_names(runs), runs, strict=True)
    }


def run_names(runs: Sequence[Run]) -> list[str]:
    """The folders' names, or whole paths if two have the same name."""
    short = [run.meta["run"] for run in runs]
    return short if len(set(short)) == len(short) else [str(run.path) for run in runs]


def caption(problem: Mapping[str, Any], meta: Meta) -> str:
    """Device, scenario and problem in one line."""
    run = meta[problem["run"]]
    axes = {axis: value for axis, value in unusual(dict(problem)).items() if axis != "device"}
    name = str(problem["run"]) if len(meta) > 1 else ""
    return " · ".join([run_caption(run, name, problem.get("device")), label(axes)])


def run_caption(run: Mapping[str, Any], name: str = "", device: Any = None) -> str:
    """Device and scenario; `name` stands for the scenario if there are several runs."""
    return f"{device_name(run, device)} · scenario {name or scenario_name(run)}"


def device_name(run: Mapping[str, Any], device: Any = None) -> str:
    """The device's own name if the environment has it, else cpu or cuda."""
    device = device or run["device"]
    name = run["environment"].get("device_name" if device == "cuda" else "cpu")
    return f"{name} ({device})" if isinstance(name, str) and name else str(device)


def cpu_threads(run: Mapping[str, Any]) -> int | None:
    """Of torch, in a run on a CPU; None if that is not known."""
    found = (run.get("environment") or {}).get("threads")
    count = found.get("intra") if isinstance(found, dict) else found  # as earlier versions wrote it
    return count if run.get("device") == "cpu" and type(count) is int else None


def device_identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """The known facts that must be equal for two numbers to come from one device."""
    names = ("device_name", "device_uuid") if run["device"] == "cuda" else ("cpu",)
    known = {name: run["environment"].get(name) for name in names}
    return {
        "device": run["device"],
        **{name: value for name, value in known.items() if value is not None},
    }


class Difference(NamedTuple):
    """A fact of the environment that differs; None if it is unknown."""

    fact: str
    base: Any
    new: Any


def fact_differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Those of COMPARED_FACTS that differ."""
    before, now = (
        {"device": one["device"]}
        | {fact: one["environment"].get(fact) for fact in COMPARED_FACTS}
        | {ALLOCATOR: allocator(one), CACHES: caches(one)}
        for one in (base, new)
    )
    return [
        Difference(fact, before[fact], now[fact]) for fact in before if before[fact] != now[fact]
    ]


def scenario_name(run: Mapping[str, Any]) -> str:
    return str(run["scenario"].get("name") or "without a name")


def when_text(run: Mapping[str, Any], *, clock: bool = False) -> str:
    """`21 Nov 2026`, or `21 Nov 09:30:00`; as the file has it if it is no date."""
    started = str(run.get("started_utc") or "")
    try:
        at = datetime.fromisoformat(started)
    except ValueError:
        return started
    day = f"{at.day} {MONTHS[at.month - 1]}"
    return f"{day} {at:%H:%M:%S}" if clock else f"{day} {at.year}"


def published_text(run: Mapping[str, Any]) -> str:
    """Whose numbers these are; "" of a run of ours."""
    source = run.get("source")
    if not isinstance(source, dict):
        return ""
    return visible(f"published by others {source['date']}, not checked here: {source['url']}")


def ours(rows: Sequence[Row], meta: Meta) -> list[Row]:
    """Those that were measured here, not published by others."""
    return [row for row in rows if not (meta.get(row.get("run") or "") or {}).get("source")]


def shard_text(run: Mapping[str, Any]) -> str:
    """`shard 2 of 8`, `merged from 8 of 8 shards`; "" for a run that was measured in one."""
    shard, merged = run.get("shard"), run.get("merged")
    if isinstance(merged, list) and merged and isinstance(merged[0], dict):
        return f"merged from {len(merged)} of {merged[0].get('of')} shards"
    if isinstance(shard, dict):
        return f"shard {shard.get('number')} of {shard.get('of')}"
    return ""


def question(run: Mapping[str, Any]) -> str:
    return str(run["scenario"].get("question") or "").strip()


def by_question(meta: Meta) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The runs that ask the same, in the order in which they are given; "" for runs that ask none.

    Sentences about some of them need not name the others.
    """
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, run in meta.items():
        found.setdefault(question(run), {})[name] = run
    return found


def plan_of(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """The plan as resolved; empty if run.json has none."""
    plan = run["scenario"].get("plan")
    return plan if isinstance(plan, dict) else {}


def allocator(run: Mapping[str, Any]) -> Any:
    """How the C heap was set while a CPU was timed; None on a GPU, where it does not matter."""
    return plan_of(run).get("allocator") if run["device"] == "cpu" else None


def caches(run: Mapping[str, Any]) -> Any:
    """Where a CPU's calls of decoding found keys and values; None on a GPU, whose L2 is flushed."""
    return plan_of(run).get("caches", "warm") if run["device"] == "cpu" else None


def budget_bytes(run: Mapping[str, Any]) -> float | None:
    budget = run.get("memory_bytes")
    return budget if isinstance(budget, int) and budget > 0 else None


def finite_number(document: Mapping[str, Any], name: str) -> float | None:
    """A number of a JSON object; None if it is missing or not a finite number."""
    value: Any = document.get(name)
    return float(value) if type(value) in (int, float) and isfinite(value) else None


def stopped(rows: Sequence[Row], meta: Meta) -> list[str]:
    """Of each run that ended early: how much of it was measured, and how to go on."""
    found = []
    for name, run in meta.items():
        mine = [row["status"] for row in rows if row["run"] == name]
        mine += [wall["status"] for wall in run.get("walls") or ()]
        mine += [one["status"] for one in run.get("unanswered") or ()]
        left = sum(status in UNFINISHED for status in mine)
        if left:
            planned = len(mine) + len({str(one["study"]) for one in run.get("studies") or ()})
            found.append(
                f"Stopped early: {planned - left} of {planned} parts were measured. Continue:"
                f" attnbench run --resume {shlex.quote(str(run['run']))}"
            )
    return found


def unanswered_texts(meta: Meta) -> list[str]:
    """Of each run with studies that found nothing: which, and why."""
    found = []
    for run in meta.values():
        every = [one for one in run.get("unanswered") or () if one["status"] not in UNFINISHED]
        named = [f"{one['case']} ({one['reason'] or one['status']})" for one in every[:MOST_NAMED]]
        named += [f"{len(every) - MOST_NAMED} more"] if len(every) > MOST_NAMED else []
        if every:
            studies = plural(len(every), "study", "studies")
            found.append(f"{studies} found nothing: {list_text(named)}.")
    return found
