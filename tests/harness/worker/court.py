"""The court: backends that cheat are measured like any other, beside honest ones. Who is caught?

Each file of tests/fakes/cheats is a backend. As literals, which are read without importing it, it
says what must become of it:

    CONVICTED = "times as far|NaN"         its row must end as incorrect or an error; a regex of why
    INCORRECT = "NaN"                      the same as incorrect; CRASHED: as an error, or crashed
    SHOWN = {"field": "peak_bytes", "least": 8388608}   ok, with at least that in a field
    HONEST = True                          it looks suspicious and is right
    PROBLEM = {"seq_len": 2048}            what it needs unlike PROBLEM below
    SHARES = True                          it leaves its process as it was
    VARIANTS = ("one", "other")            several cheats, in one group; a backend's variants

The first paragraph of its docstring says what it does. One of the first five must be there.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attnbench.harness.cases.case import Case, Group
from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.files.literals import literals
from attnbench.harness.rows.record import FAILURES, Status
from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.run.engine import RunOptions
from attnbench.harness.run.planning import SAFE_SHARE
from attnbench.harness.run.run_rows import RunRows
from attnbench.harness.run.session import open_here, open_session
from attnbench.harness.run.spec import RunSpec
from attnbench.harness.scenario import Plan, Scenario
from attnbench.harness.scenario.fields import Limits
from attnbench.harness.scenario.shards import Units
from attnbench.harness.store.run_store import Store
from attnbench.impls.discovery.registry import FOLDERS_VARIABLE
from attnbench.impls.problem import Problem
from tests.conftest import ROOT
from tests.search_path import searched

FOLDER = ROOT / "tests" / "fakes" / "cheats"
SHIPPED = ("fused", "sdpa", "naive")
PROBLEM: dict[str, Any] = {"batch": 1, "seq_len": 256, "d_model": 64, "heads": 2, "dtype": "fp32"}
# A quick run, short: the blocks are there to be cheated in, not for their precision.
PLAN = Plan(like="quick", processes=1, min_blocks=6, max_blocks=6, budget_s=1.0)
NOT_RUN = (
    *(Status.UNAVAILABLE, Status.UNSUPPORTED, Status.OOM, Status.PREDICTED_OOM),
    Status.INTERRUPTED,
)
ENDS: dict[str, tuple[Status, ...]] = {
    "CONVICTED": (Status.INCORRECT, Status.ERROR),
    "INCORRECT": (Status.INCORRECT,),
    "CRASHED": (Status.ERROR, Status.CRASHED),
}
KINDS = (*ENDS, "SHOWN", "HONEST")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conviction:
    """How a cheat's row must end: one of `statuses`, with a reason that the regex finds."""

    statuses: tuple[Status, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a row that is ok must show: `field` with at least `least`."""

    field: str
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A file of cheats/. `must` is None for an honest backend. `what`: what it does, in words.
    `shares`: its worker may measure the next one. `backends`: its names as backends.
    """

    name: str
    what: str
    problem: Problem
    must: Conviction | Shown | None
    shares: bool = False
    variants: tuple[str, ...] = ()

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(f"{self.name}:{variant}" for variant in self.variants) or (self.name,)


class Verdict(StrEnum):
    """Of a cheat: convicted as its file says, convicted otherwise, escaped. Of an honest backend:
    untouched, wrongly convicted. Of both: not applicable, since it could not run here.
    """

    CONVICTED = "convicted"
    OTHERWISE = "convicted otherwise"
    ESCAPED = "ESCAPED"
    NOT_APPLICABLE = "not applicable"
    UNTOUCHED = "untouched"
    TOUCHED = "WRONGLY CONVICTED"


WELL = (Verdict.CONVICTED, Verdict.UNTOUCHED, Verdict.NOT_APPLICABLE)


class Finding(NamedTuple):
    """What became of a backend beside a suspect, which it is itself or one of SHIPPED."""

    backend: str
    beside: str
    verdict: Verdict
    status: str
    reason: str


# ---- the files -----------------------------------------------------------------------------------


def suspects(folder: Path = FOLDER) -> tuple[Suspect, ...]:
    """All cheats, then their honest neighbours, those first that share workers.

    Raises EnvironmentUnmet without a folder, BadInput for a file that does not say what it is.
    """
    if not folder.is_dir():
        raise EnvironmentUnmet(f"{folder}: no such folder; wanted the cheats")
    found = [suspect(path) for path in sorted(folder.glob("[!_]*.py"))]
    return tuple(sorted(found, key=lambda one: (one.must is None, not one.shares)))


def suspect(path: Path) -> Suspect:
    """Read without being imported. Raises BadInput."""
    try:
        tree = ast.parse(path.read_bytes())
        said = literals(path, (*KINDS, "PROBLEM", "SHARES", "VARIANTS"))
        what = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        kinds = [name for name in KINDS if name in said]
        if len(kinds) != 1 or not what:
            raise ValueError("wanted a docstring and one of " + ", ".join(KINDS))
        return Suspect(
            name=path.stem,
            what=what,
            problem=Problem(**PROBLEM | said.get("PROBLEM", {})),
            must=_must(kinds[0], said[kinds[0]]),
            shares=said.get("SHARES", False),
            variants=said.get("VARIANTS", ()),
        )
    except (SyntaxError, ValueError, TypeError, KeyError, re.error) as error:
        raise BadInput(f"{path}: not a file of the court: {error}") from None


def _must(kind: str, said: Any) -> Conviction | Shown | None:
    if kind in ENDS:
        return Conviction(statuses=ENDS[kind], reason=re.compile(said).pattern)
    if kind == "SHOWN":
        return Shown(field=said["field"], least=said["least"])
    if said is not True:
        raise ValueError("HONEST must be True, or left out")
    return None


# ---- measuring -----------------------------------------------------------------------------------


def court(
    device: str, root: Path, seed: int, options: RunOptions, tried: Sequence[Suspect]
) -> tuple[Path, list[Finding]]:
    """Measure each suspect beside the shipped backends into a new run folder, and judge the rows.

    Raises Refusal.
    """
    groups = groups_of(tried)
    cases = [{"group": group.number, **case.fields()} for group in groups for case in group.cases]
    with _backends_from(FOLDER), open_here(device, (), options) as here:
        scenario = Scenario(
            name="court",
            question="Is every backend that cheats convicted, and no honest one?",
            backends=(*(name for one in tried for name in one.backends), *SHIPPED),
            baseline=SHIPPED[0],
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
        rows = RunRows(spec, store, Units(groups, (), ()), options.listener)
        with open_session(rows, here) as session:
            session.begin()
            # with one process per case a part is one group
            for one, part in zip(tried, session.parts, strict=True):
                session.measure(part)
                if not one.shares:  # what one cheat left behind must not convict another
                    session.pool.close()
    path = session.result.path
    found = {row["case"]: row for row in read_rows(path)}
    return path, [*judged(tried, groups, found)]


def groups_of(tried: Sequence[Suspect]) -> tuple[Group, ...]:
    """One group per file, its cheats first: what they break, they break for the honest ones."""
    return tuple(
        Group(
            number=number,
            cases=(
                *(Case(backend=name, problem=one.problem) for name in one.backends),
                *(Case(backend=name, problem=one.problem, twin=number) for name in SHIPPED),
            ),
        )
        for number, one in enumerate(tried)
    )


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
    """What became of each case, by its row."""
    for one, group in zip(tried, groups, strict=True):
        for case in group.cases:
            row, own = rows[case.id], case.backend in one.backends
            verdict = cheat_verdict(one.must, row) if own and one.must else honest_verdict(row)
            yield Finding(case.backend, one.name, verdict, row["status"], row["reason"])


def cheat_verdict(must: Conviction | Shown, row: Mapping[str, Any]) -> Verdict:
    """A row that is ok is an escape, unless it shows what it must show."""
    status = Status(row["status"])
    if status in NOT_RUN:
        return Verdict.NOT_APPLICABLE
    if isinstance(must, Shown):
        if status is not Status.OK:
            return Verdict.OTHERWISE
        return Verdict.CONVICTED if (row.get(must.field) or 0) >= must.least else Verdict.ESCAPED
    if status is Status.OK:
        return Verdict.ESCAPED
    as_declared = status in must.statuses and re.search(must.reason, row["reason"])
    return Verdict.CONVICTED if as_declared else Verdict.OTHERWISE


def honest_verdict(row: Mapping[str, Any]) -> Verdict:
    """Running out of memory is a failure here: on problems this small it is another's doing."""
    status = Status(row["status"])
    if status is Status.OK:
        return Verdict.UNTOUCHED
    failed = status in FAILURES or status is Status.OOM
    return Verdict.TOUCHED if failed else Verdict.NOT_APPLICABLE
