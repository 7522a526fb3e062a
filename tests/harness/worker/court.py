"""The court: backends that cheat are measured like any other. What becomes of each?

Each file of tests/fakes/cheats is a backend. As literals, which are read without importing it, it
says what must become of it:

    CONVICTED = "times as far|NaN"         its row must end as incorrect or an error; a regex of why
    INCORRECT = "NaN"                      the same, as incorrect
    SHOWN = {"field": "peak_bytes", "least": 8388608}   ok, with at least that in a field
    CONTAINED = "why it gains nothing"     ok, and no faster than sdpa in an untouched process
    ESCAPES = "why"                        ok, with numbers that it does not deserve; in SECURITY.md
    HONEST = True                          it looks suspicious and is right
    PROBLEM = {"seq_len": 2048}            what it needs unlike PROBLEM below
    VARIANTS = ("one", "other")            several cheats, in one group; a backend's variants
    TRIES = 8                              as often it is measured, if it is convicted by chance

The first paragraph of its docstring says what it does. One of the first six must be there.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attnbench.harness.cases.case import Case, Group
from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.files.literals import literals
from attnbench.harness.rows.record import Status
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.rows.run_store import LOGS, Store
from attnbench.harness.run.engine import RunOptions, measured_on
from attnbench.harness.run.run_rows import RunRows
from attnbench.harness.run.schedule import Schedule, schedule_parts
from attnbench.harness.run.session import open_here
from attnbench.harness.run.spec import RunSpec
from attnbench.harness.run.start import SAFE_SHARE
from attnbench.harness.run.worker_pool import Runtime
from attnbench.harness.scenario import Plan, Scenario
from attnbench.harness.scenario.fields import Limits
from attnbench.harness.scenario.shards import Units
from attnbench.impls.discovery.registry import FOLDERS_VARIABLE
from attnbench.impls.problem import Problem
from attnbench.impls.shared.cpu_flags import cpu_flags
from tests.conftest import ROOT
from tests.search_path import searched

FOLDER = ROOT / "tests" / "fakes" / "cheats"
NEIGHBOUR = "sdpa"  # in the worker that is shared, beside what must be contained
PROBLEM: dict[str, Any] = {"batch": 1, "seq_len": 256, "d_model": 64, "heads": 2, "dtype": "fp32"}
# A quick run, short: the blocks are there to be cheated in, not for their precision.
PLAN = Plan(like="quick", processes=1, min_blocks=6, max_blocks=6, budget_s=1.0)
FASTER_RATIO = (
    0.5  # of the neighbour's time: a contained cheat that takes less gains by what it does
)
NOT_RUN = (
    *(Status.UNAVAILABLE, Status.UNSUPPORTED, Status.OOM, Status.PREDICTED_OOM),
    Status.INTERRUPTED,
)
ENDS: dict[str, tuple[Status, ...]] = {
    "CONVICTED": (Status.INCORRECT, Status.ERROR),
    "INCORRECT": (Status.INCORRECT,),
}
WITH_AMX = "INCORRECT_WITH_AMX"
"""What a row must say where fp32 products of low precision are computed in bf16; its kind holds
elsewhere.
"""


class Fate(StrEnum):
    """What becomes of a backend, or must. `NOT_RUN`: it could not run here."""

    CONVICTED = "convicted"
    SHOWN = "shown"
    CONTAINED = "contained"
    ESCAPED = "escaped"
    UNTOUCHED = "untouched"
    NOT_RUN = "not run"


KINDS = {
    **dict.fromkeys(ENDS, Fate.CONVICTED),
    "SHOWN": Fate.SHOWN,
    "CONTAINED": Fate.CONTAINED,
    "ESCAPES": Fate.ESCAPED,
    "HONEST": Fate.UNTOUCHED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A file of cheats/. `what`: what it does, in words. `kind`: of KINDS, and `said` its value.
    `with_amx`: the value of WITH_AMX. `backends`: its names as backends.
    """

    name: str
    what: str
    problem: Problem
    kind: str
    said: Any
    variants: tuple[str, ...] = ()
    tries: int = 1
    with_amx: str = ""

    @property
    def here(self) -> "Suspect":
        """As it must end on this processor."""
        if not self.with_amx or "amx_bf16" not in cpu_flags():
            return self
        return replace(self, kind="INCORRECT", said=self.with_amx)

    @property
    def must(self) -> Fate:
        return KINDS[self.kind]

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(f"{self.name}:{variant}" for variant in self.variants) or (self.name,)


class Finding(NamedTuple):
    """What became of a backend, and whether its file says so."""

    backend: str
    fate: Fate
    as_said: bool
    status: str
    reason: str


# ---- the files -----------------------------------------------------------------------------------


def suspects(folder: Path = FOLDER) -> tuple[Suspect, ...]:
    """Raises EnvironmentUnmet without a folder, BadInput for a file that says not what it is."""
    if not folder.is_dir():
        raise EnvironmentUnmet(f"{folder}: no such folder; wanted the cheats")
    return tuple(suspect(path) for path in sorted(folder.glob("[!_]*.py")))


def suspect(path: Path) -> Suspect:
    """Read without being imported. Raises BadInput."""
    try:
        tree = ast.parse(path.read_bytes())
        said = literals(path, (*KINDS, WITH_AMX, "PROBLEM", "VARIANTS", "TRIES"))
        what = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        kinds = [name for name in KINDS if name in said]
        if len(kinds) != 1 or not what:
            raise ValueError("wanted a docstring and one of " + ", ".join(KINDS))
        (kind,) = kinds
        if kind in ENDS:
            re.compile(said[kind])
        return Suspect(
            name=path.stem,
            what=what,
            problem=Problem(**PROBLEM | said.get("PROBLEM", {})),
            kind=kind,
            said=said[kind],
            variants=said.get("VARIANTS", ()),
            tries=said.get("TRIES", 1),
            with_amx=said.get(WITH_AMX, ""),
        )
    except (SyntaxError, ValueError, TypeError, KeyError, re.error) as error:
        raise BadInput(f"{path}: not a file of the court: {error}") from None


# ---- measuring -----------------------------------------------------------------------------------


def court(
    device: str, root: Path, seed: int, options: RunOptions, tried: Sequence[Suspect]
) -> tuple[Path, list[Finding]]:
    """Measure each suspect into a new run folder, and judge the rows. Raises Refusal."""
    groups = [group_of(number, one) for number, one in enumerate(tried)]
    cases = [{"group": group.number, **case.fields()} for group in groups for case in group.cases]
    with _backends_from(FOLDER), open_here(device, (), options) as here:
        scenario = Scenario(
            name="court",
            question="What becomes of backends that cheat?",
            backends=tuple({case.backend: None for group in groups for case in group.cases}),
            baseline=NEIGHBOUR,
            plan=PLAN,
            limits=Limits(timeout_s=60.0),
        )
        spec = RunSpec.new(
            scenario,
            {"cases": cases},
            here.environment,
            command=list(options.command),
            memory_bytes=int(SAFE_SHARE * here.free_bytes),
            seed=seed,
        )
        store = Store.create(root, "court", {**spec.document(), "court": True})
        rows = RunRows(spec, store, Units(tuple(groups), (), ()), options.listener)
        runtime = Runtime(
            spec=spec,
            pool=here.pool,
            listener=options.listener,
            measured_on=measured_on(here.environment),
        )
        here.pool.configure(spec, store.path / LOGS)
        rows.begin()
        for part in schedule_parts(groups, PLAN):
            for record in Schedule(runtime).records([group.cases for group in part]):
                rows.keep(record)
            here.pool.close()  # what works on must not slow others
        store.close()
    found = {row["case"]: row for row in read_rows(store.path)}
    return store.path, [*judged(tried, groups, found)]


def group_of(number: int, one: Suspect) -> Group:
    """Its cheats; beside what must be contained, one that is honest."""
    cases = [
        Case(backend=name, problem=one.problem, twin=twin)
        for name in one.backends
        for twin in range(one.tries)
    ]
    if one.must is Fate.CONTAINED:
        cases.append(Case(backend=NEIGHBOUR, problem=one.problem, twin=number))
    return Group(number=number, cases=tuple(cases))


@contextmanager
def _backends_from(folder: Path) -> Iterator[None]:
    """Workers find the cheats and what these share, and no private backends: their names could be
    the same.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDERS_VARIABLE, str(folder))
        patch.setenv("PYTHONPATH", searched(ROOT / ".package", ROOT))
        yield


# ---- judging -------------------------------------------------------------------------------------


def judged(
    tried: Sequence[Suspect], groups: Sequence[Group], rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """What became of each cheat, by its row."""
    for one, group in zip((one.here for one in tried), groups, strict=True):
        ok_first = sorted(group.cases, key=lambda case: rows[case.id]["status"] != Status.OK)
        of = {case.backend: rows[case.id] for case in ok_first}  # of several tries a conviction
        for name in one.backends:
            row, fate = of[name], fate_of(one, of[name], of.get(NEIGHBOUR))
            as_said = fate is Fate.NOT_RUN or (fate is one.must and _ended_as_said(one, row))
            yield Finding(name, fate, as_said, row["status"], row["reason"])


def fate_of(
    one: Suspect, row: Mapping[str, Any], neighbour: Mapping[str, Any] | None = None
) -> Fate:
    """A row of a cheat that is ok is an escape, unless it shows what it must show, or is contained
    and the neighbour's is ok too.
    """
    status = Status(row["status"])
    if status in NOT_RUN:
        return Fate.NOT_RUN
    if status is not Status.OK:
        return Fate.CONVICTED
    if one.must is Fate.UNTOUCHED:
        return Fate.UNTOUCHED
    if one.must is Fate.SHOWN and (row.get(one.said["field"]) or 0) >= one.said["least"]:
        return Fate.SHOWN
    if one.must is Fate.CONTAINED and neighbour is not None and neighbour["status"] == Status.OK:
        own_ms, honest_ms = fastest_ms(row), fastest_ms(neighbour)
        return Fate.CONTAINED if own_ms >= FASTER_RATIO * honest_ms else Fate.ESCAPED
    return Fate.ESCAPED


def fastest_ms(row: Mapping[str, Any]) -> float:
    """Of all calls: other work on the machine changes this least."""
    return min(min(block) for process in row["block_ms"] for block in process)


def _ended_as_said(one: Suspect, row: Mapping[str, Any]) -> bool:
    if one.kind not in ENDS:
        return True
    return row["status"] in ENDS[one.kind] and bool(re.search(one.said, row["reason"]))
