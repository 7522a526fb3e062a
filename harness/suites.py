"""What is stored: how far a run is, suites (folders of runs, docs/format.md), what `latest` is."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import BadInput
from .printable import visible
from .record import FAILURES, RETRIED, SCHEMA, Status
from .store import LATEST, META, SUITE, read_meta, read_rows, runs, runs_and_suites

PLANS = ("cases", "walls", "studies", "kernels")


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
    """An entry of a suite. `state`: None without a run; `refused`: why it could not start."""

    scenario: str
    state: RunState | None = None
    refused: str = ""

    @property
    def is_finished(self) -> bool:
        return self.state is not None and self.state.is_finished

    @property
    def ended(self) -> str:
        """In a word: finished, interrupted, refused or not started."""
        if self.state is not None:
            return "finished" if self.state.is_finished else "interrupted"
        return "refused" if self.refused else "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteState:
    """How far a suite is, by its plan and by the rows of its runs."""

    path: Path
    entries: Sequence[SuiteEntryState] = field(default_factory=tuple)

    @property
    def runs(self) -> list[Path]:
        """Those that have started, in the order of the plan."""
        return [entry.state.path for entry in self.entries if entry.state is not None]

    @property
    def has_ended(self) -> bool:
        """Every entry was finished or refused, and not all were refused."""
        tried = all(entry.is_finished or entry.ended == "refused" for entry in self.entries)
        return tried and any(entry.is_finished for entry in self.entries)


def is_suite(path: Path) -> bool:
    return (path / SUITE).is_file()


def run_state(path: Path) -> RunState:
    """Raises BadInput if a file of the run is broken."""
    meta = read_meta(path)
    last = {row["case"]: str(row.get("status")) for row in read_rows(path)}
    try:
        planned = {one["case"] for plan in PLANS for one in meta.get(plan) or ()}
        device, scenario = str(meta["device"]), str(meta["scenario"].get("name"))
    except (KeyError, TypeError, AttributeError):
        device, scenario, planned = "?", "?", set(last)
    kernels, court = meta.get("kernels"), meta.get("court")
    return RunState(
        path=path,
        device=device,
        scenario=scenario,
        statuses=Counter(last.values()),
        missing=len(planned - set(last)),
        not_measured="an audit of kernels" if kernels else "a court of backends" if court else "",
    )


def read_suite(path: Path) -> dict[str, Any]:
    """suite.json. Raises BadInput if it is broken or newer than this version."""
    file = path / SUITE
    try:
        document = json.loads(file.read_bytes())
        schema = int(document["schema"])
        for entry in document["entries"]:
            names = (entry["scenario"]["name"], entry["source"], *entry["only"], *entry["skip"])
            if not all(isinstance(name, str) for name in (*names, *entry["within"])):
                raise TypeError("wanted text")
            if not names[0].isprintable():
                raise ValueError("the name of a scenario")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{file}: not readable ({error!r}); the suite cannot be used") from None
    if schema > SCHEMA:
        raise BadInput(
            f"{file}: format {schema} is newer than this attnbench understands ({SCHEMA});"
            " upgrade attnbench"
        )
    return dict(document)


def runs_by_entry(path: Path) -> dict[int, Path]:
    """The run of each entry of a suite: run.json says which entry it is of."""
    found = {run: read_meta(run).get("suite_entry") for run in runs(path)}
    return {number: run for run, number in found.items() if type(number) is int}


def suite_state(path: Path) -> SuiteState:
    """Raises BadInput if a file of the suite is broken."""
    entries, found = read_suite(path)["entries"], runs_by_entry(path)
    return SuiteState(
        path=path,
        entries=[
            SuiteEntryState(
                scenario=entry["scenario"]["name"],
                state=run_state(found[number]) if number in found else None,
                refused=_refused(entry),
            )
            for number, entry in enumerate(entries)
        ],
    )


def _refused(entry: Mapping[str, Any]) -> str:
    """The first line of why an entry could not start; "" if it was not refused."""
    if entry.get("ended") != "refused":
        return ""
    return visible(str(entry.get("reason")).partition("\n")[0])


def newest_finished(root: Path) -> Path | None:
    """What `latest` names: the run or the suite that finished last.

    An audit of kernels, a court, an empty run and an interrupted one do not count; of an unfinished
    suite its newest finished run does.
    """
    linked = root / LATEST
    candidates = [linked.resolve()] if linked.exists() else []
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


def _finished(path: Path) -> Path | None:
    if not is_suite(path):
        counts = (path / META).is_file() and not run_state(path).why_not_counted
        return path if counts else None
    state = suite_state(path)
    if state.has_ended:
        return path
    finished = [run for run in reversed(runs(path)) if not run_state(run).why_not_counted]
    return finished[0] if finished else None
