"""Rows of earlier runs that answer a question: same device, same torch, same problem."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...harness.run_files import BadRun, read_meta
from ..data.read import Run, read_run
from ..data.run_meta import device_identity
from .asked import Fields, key, key_over

UNFINISHED = ("interrupted", "not reached")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Facts of run.json's environment that a run must share: cpu or device_uuid, torch, threads."""

    kind: str
    facts: Mapping[str, Any]

    def measured(self, meta: Mapping[str, Any]) -> bool:
        """Whether a run was made on this device, with these versions."""
        known = {**meta["environment"], **device_identity(meta)}
        return meta["device"] == self.kind and all(
            known.get(name) == value for name, value in self.facts.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A row and the run that it is from."""

    run: Run
    row: Fields


@dataclass(slots=True)
class StoredRows:
    """The rows of runs, newest first, by problem and backend."""

    found: dict[tuple[Any, ...], dict[str, Stored]] = field(default_factory=dict)
    over: dict[tuple[Any, ...], list[Stored]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, problem: Fields) -> Mapping[str, Stored]:
        """Per backend, the newest row of this problem."""
        return self.found.get(key(problem), {})

    def over_lengths(self, problem: Fields, backend: str) -> list[Stored]:
        """A backend's rows of this problem at any length; the newest of each."""
        rows = self.over.get(key_over(problem), [])
        return [one for one in rows if one.row["backend"] == backend]

    def add(self, run: Run) -> None:
        """Rows of a run that is older than those before it."""
        self.runs.append(run)
        for row in run.rows:
            if row["status"] in UNFINISHED or row.get("python") is not None or row.get("twin"):
                continue
            backends = self.found.setdefault(key(row), {})
            if row["backend"] not in backends:
                backends[row["backend"]] = stored = Stored(run=run, row=row)
                self.over.setdefault(key_over(row), []).append(stored)


def stored_rows(
    folders: Iterable[Path], device: Device, problems: Iterable[Fields], backends: Iterable[str]
) -> StoredRows:
    """From run folders, newest first. Reads the rows of those only that planned something wanted.

    A folder that cannot be read is left out, with a note.
    """
    lengths, wanted = {key_over(problem) for problem in problems}, set(backends)
    rows = StoredRows()
    for folder in folders:
        try:
            meta = read_meta(folder)
            if meta.get("court") or not device.measured(meta):
                continue
            if any(
                case["backend"] in wanted and key_over(case) in lengths for case in meta["cases"]
            ):
                rows.add(read_run(folder))
        except BadRun as error:
            rows.notes.append(f"left out: {error}")
    return rows
