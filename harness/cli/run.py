"""`attnbench run`: a scenario, several as a suite, a grid given by options, or what a run lacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from ..files.errors import BadInput
from ..run.packs import opted, run_options, selected
from . import completion
from .measuring import Grid, Session, measure_all, print_dry_run, read_scenarios
from .options import (
    EARLIER,
    Baseline,
    InShard,
    MemoryGib,
    OfModel,
    OfPhase,
    Only,
    PlanName,
    Pythons,
    Replicate,
    Scenarios,
    Sets,
    Several,
    Skip,
    Timeout,
    Tp,
    Where,
    option,
)
from .texts import as_changes, given

if TYPE_CHECKING:
    from ..run.suite import SuiteEntry
    from ..scenario.selection import Selection

OfPacks = Annotated[Mapping[str, Any], Several(run_options())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGrid(Grid):
    """A grid, also of a model's attention."""

    model: OfModel = None
    phase: OfPhase = None
    tp: Tp = None
    baseline: Baseline = None

    @property
    def values(self) -> dict[str, Any]:
        tp = None if self.tp is None else str(self.tp)
        words = {"model": self.model, "phase": self.phase, "tp": tp, "baseline": self.baseline}
        return {**super(ModelGrid, self).values, **given(words)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which cases, and in which interpreters."""

    only: Only = None
    skip: Skip = None
    shard: InShard = None
    replicate: Replicate = None
    pythons: Pythons = None

    def selection(self) -> "Selection":
        """Raises BadInput."""
        from ..process.interpreter import read_interpreters
        from ..scenario.selection import Selection
        from ..scenario.shards import read_shard

        return Selection(
            only=tuple(self.only or ()),
            skip=tuple(self.skip or ()),
            interpreters=read_interpreters(self.pythons or ()),
            copies=self.replicate or 1,
            shard=None if self.shard is None else read_shard(self.shard),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Fields of the scenario that are set."""

    sets: Sets = None
    device: Where = None
    timeout: Timeout = None
    memory_gib: MemoryGib = None
    plan: PlanName = None

    @property
    def changes(self) -> list[str]:
        own = as_changes(self.device, self.timeout, self.memory_gib, self.plan)
        return [*(self.sets or []), *own]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A run that is resumed."""

    resume: Annotated[
        str | None,
        option("--resume RUN", "Measure what this run still lacks.", EARLIER, completion.runs),
    ] = None
    retry_failed: Annotated[
        bool,
        option(
            "--retry-failed", "With --resume: crashed, failed and timed-out cases again.", EARLIER
        ),
    ] = False
    force: Annotated[
        bool, option("--force", "With --resume: even in another environment.", EARLIER)
    ] = False


def run(
    scenarios: Scenarios = None,
    *,
    grid: ModelGrid,
    part: Part,
    changed: Changed,
    of_packs: OfPacks,
    earlier: Earlier,
    session: Session,
) -> None:
    """Measure a scenario, several of them as a suite, or a grid given by options.

    Prints the folder of the run or the suite; progress goes to stderr.
    """
    several = part.only or part.skip or part.shard or part.replicate
    planned = scenarios or grid.values or grid.backend or changed.changes or several
    if earlier.resume is not None and (planned or session.dry_run):
        raise BadInput(
            "--resume: the run is measured as it was planned; leave out scenarios, axes,"
            " --backend, --set, --only, --skip, --shard, --replicate, --plan, --device, --timeout,"
            " --memory-gib and --dry-run"
        )
    if earlier.resume is None and (earlier.retry_failed or earlier.force):
        raise BadInput("--retry-failed and --force belong to --resume RUN")
    progress, options = session.listening(allow_import=grid.allow_import)
    options = opted(options, of_packs, dry_run=session.dry_run)
    selection = selected(part.selection(), of_packs)
    if earlier.resume is not None:
        return _resume(earlier, selection, session, progress, options)
    entries, is_suite = _planned(scenarios or [], grid, changed.changes, selection)
    if session.dry_run:
        return print_dry_run(entries, session.out, of_packs)
    return _measure(entries, scenarios or [], session, progress, options, is_suite=is_suite)


def _resume(
    earlier: Earlier, selection: "Selection", session: Session, progress: Any, options: Any
) -> None:
    from ..run.start import resume_run
    from ..run.suite import Suite
    from ..store.names import find
    from ..store.suites import is_suite
    from .suite import measure_suite

    path = find(earlier.resume or "", session.out, unfinished=True)
    pythons, attachments = selection.interpreters, selection.attachments
    if is_suite(path):
        suite = Suite(path, pythons, attachments, retry_failed=earlier.retry_failed)
        measure = partial(measure_suite, force=earlier.force)
        return measure(suite, options, progress, session)
    job = partial(resume_run, path, interpreters=pythons, force=earlier.force)
    job = partial(job, attachments=attachments, retry_failed=earlier.retry_failed)
    return measure_all([job], progress, options, session)


def _planned(
    scenarios: list[str], grid: Grid, changes: list[str], selection: "Selection"
) -> "tuple[list[SuiteEntry], bool]":
    """What is measured, and whether it is a suite. Raises BadInput."""
    from ..scenario.of_attachments import alone, beside
    from ..scenario.selection import backends_of, refuse_too_many, refuse_unmatched
    from .suite import planned_entries

    attachments, own = selection.attachments, None
    if attachments and not (scenarios or grid.values):
        entries, is_suite = [alone(attachments, changes)], False
    else:
        more = backends_of(grid.backend or ())
        entries, is_suite = read_scenarios(scenarios, grid.values, changes, more)
        own = beside(attachments, changes) if attachments and is_suite else None
    planned = planned_entries(entries, selection, own)
    refuse_unmatched((entry.scenario, entry.selection) for entry in planned)
    refuse_too_many((entry.scenario for entry in planned), selection)
    return planned, is_suite


def _measure(
    planned: "list[SuiteEntry]",
    scenarios: list[str],
    session: Session,
    progress: Any,
    options: Any,
    *,
    is_suite: bool,
) -> None:
    from ..run.start import start_run
    from ..run.suite import Suite
    from ..scenario.selection import refuse_imports
    from .suite import measure_suite, suite_name

    for entry in planned:
        refuse_imports(entry.scenario.backends, allowed=options.allow_import)
    out, seed = session.out, session.seed
    if is_suite:
        suite = Suite.create(out, suite_name(scenarios), planned, seed, options.command)
        return measure_suite(suite, options, progress, session)
    (one,) = planned
    job = partial(start_run, one.scenario, out, seed, one.selection)
    return measure_all([job], progress, options, session)
