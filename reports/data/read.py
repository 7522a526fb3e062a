"""Reads and checks the files of one run, as docs/format.md defines them; never writes."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from ...harness.printable import visible
from ...harness.row_schema import FIELDS, KERNEL_PLAN, LATER_VALUES, PROBLEM
from ..formatting import list_text, plural
from .row_checks import INT64, Types, check_fields, check_object, check_row

Document = dict[str, Any]
# MIGRATIONS[n - 1] takes a document (run.json, or one row) of format n to format n + 1.
MIGRATIONS: tuple[Callable[[Document], Document], ...] = ()
SCHEMA = 1 + len(MIGRATIONS)
LINE_CAP_BYTES = 16 << 20
RUN_JSON_CAP_BYTES = 64 << 20  # a plan of 100 000 cases

META: Types = {
    "run": (str,),
    "device": (str,),
    "scenario": (dict,),
    "cases": (list,),
    "environment": (dict,),
}
_PROBLEM: Types = {name: FIELDS["latency"][name].types for name in PROBLEM}
PLANS: dict[str, Types] = {
    "cases": {"case": (str,), "backend": (str,), **_PROBLEM},
    "walls": {
        "case": (str,),
        "backend": (str,),
        **{name: types for name, types in _PROBLEM.items() if not name.endswith("seq_len")},
    },
    "studies": {"case": (str,), "study": (str,)},
    "kernels": {
        "case": (str,),
        **{
            field.name: field.types
            for field in map(FIELDS["kernel"].__getitem__, KERNEL_PLAN)
            if not field.later
        },
    },
    "environments": {"name": (str,), "path": (str,), "environment": (dict,)},
}


class BadRun(ValueError):
    """One line: file, line number, what was found and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run's folder.

    `rows`: the last row of every case in the order of the plan; `missing`: the planned cases
    without a row; the same for walls, studies and kernels.
    """

    path: Path
    meta: Document
    rows: list[Document]
    missing: list[Document]
    walls: list[Document]
    missing_walls: list[Document]
    studies: list[Document]
    missing_studies: list[Document]
    kernels: list[Document]
    missing_kernels: list[Document]
    notes: list[str]


def read_run(path: str | Path) -> Run:
    """Raises BadRun."""
    folder = Path(path)
    if not folder.is_dir():
        found = "not a folder" if folder.exists() else "no such folder"
        raise BadRun(f"{_name(folder)}: {found}; wanted the folder of a run, with run.json in it")
    if (folder / "suite.json").is_file() and not (folder / "run.json").exists():
        raise BadRun(f"{_name(folder)}: a suite of runs; wanted one of the run folders in it")
    notes: list[str] = []
    meta = _read_meta(folder / "run.json")
    last: dict[str, dict[str, Document]] = {kind: {} for kind in FIELDS}
    other_kinds = 0
    for row in _read_rows(folder / "rows.jsonl", notes):
        if row["kind"] in last:
            last[row["kind"]][row["case"]] = row
        else:
            other_kinds += 1
    if other_kinds:
        notes.append(
            f"{plural(other_kinds, 'row')} of a kind other than {list_text(list(FIELDS))} left out"
        )
    rows, missing = _by_plan(last["latency"], meta["cases"], "cases", notes)
    walls, missing_walls = _by_plan(last["wall"], meta.get("walls") or [], "walls", notes)
    studies, missing_studies = _by_plan(last["study"], meta.get("studies") or [], "studies", notes)
    kernels, missing_kernels = _by_plan(last["kernel"], meta.get("kernels") or [], "kernels", notes)
    return Run(
        path=folder,
        meta=meta,
        rows=rows,
        missing=missing,
        walls=walls,
        missing_walls=missing_walls,
        studies=studies,
        missing_studies=missing_studies,
        kernels=kernels,
        missing_kernels=missing_kernels,
        notes=notes,
    )


def results_folders(run: Path) -> list[Path]:
    """Where self-checks that count for a run may be: beside it, and beside its suite."""
    beside = run.parent
    in_suite = (beside / "suite.json").is_file()
    return [beside, beside.resolve().parent] if in_suite else [beside]


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


def _read_meta(path: Path) -> Document:
    file = open_plain(path)
    if file is None:
        raise BadRun(
            f"{_name(path)}: no such file; wanted the folder of a run, with run.json in it"
        )
    with file:
        text = file.read(RUN_JSON_CAP_BYTES + 1)
    if len(text) > RUN_JSON_CAP_BYTES:
        raise BadRun(f"{_name(path)}: longer than {RUN_JSON_CAP_BYTES >> 20} MiB")
    meta = _current(_parse(text, _name(path)), _name(path))
    with _refusals(_name(path)):
        check_fields(meta, META)
    memory_bytes = meta.get("memory_bytes")
    if memory_bytes is not None and (
        type(memory_bytes) is not int or not 0 <= memory_bytes < INT64
    ):
        raise BadRun(f"{_name(path)}: memory_bytes: wanted a number of bytes")
    for plan in PLANS:
        if not isinstance(meta.get(plan, []), list):
            raise BadRun(f"{_name(path)}: {plan}: wanted a list")
    with _refusals(_name(path)):
        for plan, wanted in PLANS.items():
            for number, one in enumerate(meta.get(plan, [])):
                _check_planned(one, wanted, f"{plan}[{number}]")
    return meta


def _check_planned(one: object, wanted: Types, name: str) -> None:
    if isinstance(one, dict):
        for later in wanted.keys() & LATER_VALUES.keys():
            one.setdefault(later, LATER_VALUES[later])
        if one.get("python") is not None:
            wanted = {**wanted, "python": (str,)}
    check_object(one, wanted, name)


@contextmanager
def _refusals(where: str) -> Iterator[None]:
    """Turns what a check raises into BadRun, with the place in front."""
    try:
        yield
    except ValueError as error:
        raise BadRun(f"{where}: {error}") from None


def _read_rows(path: Path, notes: list[str]) -> Iterator[Document]:
    file = open_plain(path)
    if file is None:
        # run.json is written first: a run that was stopped before its first case has no rows
        return
    with file:
        number = 0
        while line := file.readline(LINE_CAP_BYTES + 1):
            number += 1
            where = f"{_name(path)}:{number}"
            if len(line) > LINE_CAP_BYTES:
                raise BadRun(f"{where}: longer than {LINE_CAP_BYTES >> 20} MiB")
            if not line.endswith(b"\n"):
                notes.append(
                    f"the last line of rows.jsonl (line {number}) was torn off in the middle and"
                    " was left out"
                )
                return
            row = _current(_parse(line, where), where)
            with _refusals(where):
                check_fields(row, {"kind": (str,), "case": (str,)})
                if row["kind"] in FIELDS:  # else of a later version, and left out
                    check_row(row)
            yield row


def open_plain(path: Path) -> BinaryIO | None:
    """The file, or None if there is none. Follows no links, and refuses pipes and devices."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = "a link, and links are not followed" if path.is_symlink() else str(error.strerror)
        raise BadRun(f"{_name(path)}: {reason}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadRun(f"{_name(path)}: not a plain file")
    return os.fdopen(handle, "rb")


def _parse(text: bytes, where: str) -> Document:
    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not JSON; a missing value is null")

    def finite(digits: str) -> float:
        return value if isfinite(value := float(digits)) else refuse(digits)

    if text.startswith(b"\x1f\x8b"):
        raise BadRun(f"{where}: compressed with gzip; unpack it first")
    try:
        document = json.loads(text.decode(), parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError) as error:
        found = "empty" if not text.strip() else f"not valid JSON ({visible(str(error))})"
        raise BadRun(f"{where}: {found}") from None
    if not isinstance(document, dict):
        raise BadRun(f"{where}: wanted a JSON object, found {type(document).__name__}")
    return document


def _current(document: Document, where: str) -> Document:
    """The document, migrated to the current format."""
    schema = document.get("schema")
    if type(schema) is not int or schema < 1:
        raise BadRun(
            f"{where}: schema: found {visible(repr(schema))[:40]}, wanted a format version from 1"
            f" to {SCHEMA}"
        )
    if schema > SCHEMA:
        raise BadRun(
            f"{where}: written in format {schema}, newer than format {SCHEMA} that this attnbench"
            " reads; update attnbench"
        )
    for migrate in MIGRATIONS[schema - 1 :]:
        document = migrate(document)
    return document


def _name(path: Path) -> str:
    return visible(str(path))
