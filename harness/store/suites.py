"""What is stored: how far a run is, suites (folders of runs, docs/format.md), what `latest` is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..files.errors import BadInput
from ..files.printable import visible
from ..rows.record import FAILURES, RETRIED, Status
from ..rows.run_files import META, PLANNED, SUITE, BadRun, read_meta, read_rows, read_suite
from .run_store import LATEST, runs, runs_and_suites


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How far a run is.

    `statuses`: of the rows that count. `missing`: how much of the plan has no row. `not_measured`:
    what it is if it does not measure backends; "" if it does.
    """

    path: Path
    device: str
    scenario: str
    statuses: Counter[str]
    missing: int
    question: str = ""
    started_utc: str = ""
    not_measured: str = ""

    @property
    def is_finished(self) -> bool:
        """Everything planned was tried to the end, and something was planned."""
        return not self.missing and not self.statuses[Status.INTERRUPTED] and bool(self.statuses)

    @property
    def has_failures(self) -> bool:
        return any(self.statuses[status] for status in FAILURES)

    @property
    def can_be_retried(self) -> bool:
        return any(self.statuses[status] for status in RETRIED)

    @property
    def why_not_counted(self) -> str:
        """Why it cannot be `latest` or a baseline; "" for a finished run that measures backends."""
        if self.not_measured:
            return self.not_measured
        if not sum(self.statuses.values()) - self.statuses[Status.INTERRUPTED]:
            return "an empty run: no case has a result"
        left = self.missing + self.statuses[Status.INTERRUPTED]
        return f"not finished: {left} of {self.planned} cases have no result" if left else ""

    @property
    def planned(self) -> int:
        return self.statuses.total() + self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEntryState:
    """An entry of a suite. `state`: None without a run; `refused`: why it could not start;
    `broken`: why its run cannot be read.
    """

    scenario: str
    state: RunState | None = None
    refused: str = ""
    broken: str = ""

    @property
    def ended(self) -> str:
        """In a word: finished, interrupted, broken, refused or not started."""
        if self.broken:
            return "broken"
        if self.state is not None:
            return "finished" if self.state.is_finished else "interrupted"
        return "refused" if self.refused else "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteState:
    """How far a suite is, by its plan and by the rows of its runs. `broken`: why runs in its folder
    cannot be read, of which it is not known to which entry they belong.
    """

    path: Path
    entries: Sequence[SuiteEntryState] = field(default_factory=tuple)
    broken: Sequence[str] = ()

    @property
    def runs(self) -> list[Path]:
        """Those that have started, in the order of the plan."""
        return [entry.state.path for entry in self.entries if entry.state is not None]

    @property
    def has_ended(self) -> bool:
        """Every entry was finished or refused, and not all were refused."""
        ends = {entry.ended for entry in self.entries}
        return not self.broken and "finished" in ends and ends <= {"finished", "refused"}


def is_suite(path: Path) -> bool:
    return (path / SUITE).is_file()


def run_state(path: Path) -> RunState:
    """Raises BadInput if a file of the run is broken."""
    meta = read_meta(path)
    last = {row["case"]: str(row.get("status")) for row in read_rows(path)}
    planned = {one["case"] for plan in PLANNED for one in meta.get(plan) or ()}
    kernels, court = meta.get("kernels"), meta.get("court")
    return RunState(
        path=path,
        device=meta["device"],
        scenario=str(meta["scenario"].get("name")),
        statuses=Counter(last.values()),
        missing=len(planned - set(last)),
        question=str(meta["scenario"].get("question") or ""),
        started_utc=str(meta.get("started_utc") or ""),
        not_measured="an audit of kernels" if kernels else "a court of backends" if court else "",
    )


def runs_by_entry(path: Path, broken: list[str] | None = None) -> dict[int, Path]:
    """The run of each entry of a suite: run.json says which entry it is of.

    Raises BadInput if one cannot be read; `broken` gets the reason instead.
    """
    found: dict[int, Path] = {}
    for run in runs(path):
        try:
            number = read_meta(run).get("suite_entry")
        except BadInput as error:
            if broken is None:
                hint = "move its folder out of the suite to go on without it"
                raise BadRun(f"{error}; {hint}") from None
            broken.append(str(error))
        else:
            if type(number) is int:
                found[number] = run
    return found


def suite_state(path: Path) -> SuiteState:
    """Raises BadInput if suite.json is broken."""
    broken: list[str] = []
    found = runs_by_entry(path, broken)
    entries = read_suite(path)["entries"]
    return SuiteState(
        path=path,
        entries=[_entry_state(entry, found.get(number)) for number, entry in enumerate(entries)],
        broken=broken,
    )


def _entry_state(entry: Mapping[str, Any], run: Path | None) -> SuiteEntryState:
    scenario = entry["scenario"]["name"]
    try:
        state = run_state(run) if run is not None else None
    except BadInput as error:
        return SuiteEntryState(scenario=scenario, broken=str(error))
    refused = entry.get("reason") if entry.get("ended") == "refused" else ""
    why = visible(str(refused).partition("\n")[0])
    return SuiteEntryState(scenario=scenario, state=state, refused=why)


def newest_finished(root: Path) -> Path | None:
    """What `latest` names: the run or the suite that finished last.

    An audit of kernels, a court, an empty run and an interrupted one do not count, nor does a link
    out of the folder; of an unfinished suite its newest finished run does.
    """
    linked = root / LATEST
    inside = linked.exists() and linked.resolve().is_relative_to(root.resolve())
    candidates = [linked.resolve()] if inside else []
    for path in [*candidates, *reversed(runs_and_suites(root))]:
        with suppress(BadInput):  # a broken run is none
            if found := _finished(path):
                return found
    return None


def newest_started(root: Path) -> Path | None:
    """What `--resume latest` names: the run or the suite that was started last."""
    for path in reversed(runs_and_suites(root)):
        with suppress(BadInput):
            if is_suite(path) or not run_state(path).not_measured:
                return path
    return None


def unfinished_after(found: Path, root: Path) -> Path | None:
    """The run or suite under `root` that was started last, if that was after `found` and it is not
    finished; None if there is none, or if `found` is a part of it.
    """
    stored = runs_and_suites(root)
    if not stored or found.is_relative_to(stored[-1].resolve()):
        return None  # as nearly always: no run need be read
    newest = newest_started(root)
    if newest is None or newest.name < found.name or found.is_relative_to(newest.resolve()):
        return None
    with suppress(BadInput):
        return None if _finished(newest) else newest
    return None


def _finished(path: Path) -> Path | None:
    if not is_suite(path):
        counts = (path / META).is_file() and not run_state(path).why_not_counted
        return path if counts else None
    state = suite_state(path)
    if state.has_ended:
        return path
    finished = [run for run in reversed(runs(path)) if not run_state(run).why_not_counted]
    return finished[0] if finished else None
