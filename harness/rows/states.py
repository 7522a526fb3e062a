"""What is stored: how far a run is, and which one `latest` is."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..files.errors import BadInput
from .record import Status
from .run_files import META, PLANNED, read_meta, read_rows
from .run_store import LATEST, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How far a run is.

    `statuses`: of the rows that count. `missing`: how much of the plan has no row.
    """

    path: Path
    device: str
    statuses: Counter[str]
    missing: int
    question: str = ""
    started_utc: str = ""

    @property
    def is_finished(self) -> bool:
        """Everything planned was tried to the end, and something was planned."""
        return not self.why_not_counted

    @property
    def why_not_counted(self) -> str:
        """Why it cannot be `latest` or a baseline; "" for a finished run with results."""
        if not sum(self.statuses.values()) - self.statuses[Status.INTERRUPTED]:
            return "an empty run: no case has a result"
        left = self.missing + self.statuses[Status.INTERRUPTED]
        return f"not finished: {left} of {self.planned} cases have no result" if left else ""

    @property
    def planned(self) -> int:
        return self.statuses.total() + self.missing


def run_state(path: Path) -> RunState:
    """Raises BadInput if a file of the run is broken."""
    meta = read_meta(path)
    last = {row["case"]: str(row.get("status")) for row in read_rows(path)}
    planned = {one["case"] for plan in PLANNED for one in meta.get(plan) or ()}
    return RunState(
        path=path,
        device=meta["device"],
        statuses=Counter(last.values()),
        missing=len(planned - set(last)),
        question=str(meta["scenario"].get("question") or ""),
        started_utc=str(meta.get("started_utc") or ""),
    )


def newest_finished(root: Path) -> Path | None:
    """What `latest` names: the run that finished last.

    An empty run and an interrupted one do not count, nor does a link out of the folder.
    """
    linked = root / LATEST
    inside = linked.exists() and linked.resolve().is_relative_to(root.resolve())
    candidates = [linked.resolve()] if inside else []
    for path in [*candidates, *reversed(runs(root))]:
        with suppress(BadInput):  # a broken run is none
            if _has_finished(path):
                return path
    return None


def newest_started(root: Path) -> Path | None:
    """What `--resume latest` names: the run that was started last."""
    for path in reversed(runs(root)):
        with suppress(BadInput):
            read_meta(path)
            return path
    return None


def unfinished_after(found: Path, root: Path) -> Path | None:
    """The run under `root` that was started last, if that was after `found` and it is not
    finished; None if there is none.
    """
    stored = runs(root)
    if not stored or found == stored[-1].resolve():
        return None  # as nearly always: no run need be read
    newest = newest_started(root)
    if newest is None or newest.name < found.name or found == newest.resolve():
        return None
    with suppress(BadInput):
        return None if _has_finished(newest) else newest
    return None


def _has_finished(path: Path) -> bool:
    return (path / META).is_file() and run_state(path).is_finished
