"""A run as it was planned and as it ended: what harness/rows/run_files.py reads, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...harness.rows.run_files import (
    LINE_CAP_BYTES,
    META,
    SCHEMA,
    SUITE,
    BadRun,
    Document,
    open_file,
    read_meta,
    read_rows,
    shown_path,
)
from ..formatting import list_text, plural

__all__ = [
    "LINE_CAP_BYTES",
    "SCHEMA",
    "BadRun",
    "Document",
    "Run",
    "open_file",
    "read_run",
    "read_runs",
    "results_folders",
]


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
    if (folder / SUITE).is_file() and not (folder / META).exists():
        raise BadRun(f"{shown_path(folder)}: a suite of runs; wanted one of the run folders in it")
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
    """Where self-checks that count for a run may be: beside it, beside its suite, and beside the
    two folders of a gate.
    """
    beside = run.parent
    is_part = (beside / SUITE).is_file() or beside.name in ("base", "head")
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
