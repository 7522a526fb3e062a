"""Merge runs of shards into one run."""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, unless_refused
from ..files.printable import spaced
from ..files.safe_files import (
    NotPlain,
    is_folder,
    make_folder,
    opened,
    refuse_way_out,
    sweep,
    sync_folder,
    temporary,
    write_all,
    write_whole,
)
from ..process.worker_log import LOG_CAP_BYTES
from ..rows.run_files import (
    META,
    ROWS,
    SCHEMA,
    read_lines,
    read_meta,
    shown_path,
)
from ..rows.run_store import LOGS, point_latest, writer_lock
from .merge_sources import (
    Rows,
    Source,
    planned_in,
    read_all,
    read_sources,
)

STAMP = "%Y%m%dT%H%M%SZ"


def merge(
    paths: Sequence[Path],
    target: Path | None,
    root: Path,
    command: Sequence[str],
) -> dict[str, Any]:
    """One run of all rows of the runs at `paths`, which stay as they are.

    `target`: its folder; None for a new one in `root`, named after the plan, the same for the same
    shards. A merged run that is there gets what it lacks. Raises BadInput.
    """
    paths = list({path.resolve(): None for path in paths})
    sources = read_sources(paths)
    rows = read_all(sources)
    plan, of = sources[0].plan, sources[0].of
    numbers = [source.number for source in sources]
    if target is None:
        target = root / _name(sources)
    if target.resolve() in paths:
        raise BadInput(f"-o {shown_path(target)}: one of the runs to merge; choose another folder")
    document = _document(sources, rows, command, target.name)
    with unless_refused(shown_path(target), "choose another folder with -o"):
        refuse_way_out(target)
        changed = _write(target, document, sources, rows)
    missing = rows.unfinished(plan)
    notes = list(rows.notes)
    budgets = {source.part["memory_bytes"] for source in sources}
    if len(budgets) > 1:
        notes.append(
            f"the shards had different memory budgets, {spaced(min(budgets))} to"
            f" {spaced(max(budgets))} bytes, a share of what was free; give all the same with"
            " --memory-gib"
        )
    if not missing and target.parent == root:
        notes += filter(None, [point_latest(root, target.name)])
    return {
        "run": str(target),
        "shards": numbers,
        "of": of,
        "planned": len(planned_in(plan)),
        # a shard that is empty has no run
        "absent_shards": sorted({*range(1, of + 1)} - {*numbers}) if missing else [],
        "missing": missing,
        "changed": changed,
        "notes": notes,
    }


def _document(
    sources: Sequence[Source], rows: Rows, command: Sequence[str], name: str
) -> dict[str, Any]:
    """run.json of the merged run: that of one run, and of which shards it was made."""
    first, parts = sources[0], [source.part for source in sources]
    merged = first.spec.model_copy(
        update={
            **first.plan,
            "command": list(command),
            "started_utc": min(part["started_utc"] for part in parts),
            "memory_bytes": min(part["memory_bytes"] for part in parts),
            "devices": rows.devices,
            "merged": parts,
        }
    )
    document = merged.model_dump(exclude_unset=True, exclude={"shard"})
    return {"schema": SCHEMA, "run": name, **document}


def _write(
    target: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows
) -> bool:
    """Write the run; whether there was anything to write. Raises BadInput, OSError."""
    if not target.exists() and _made(target, document, sources, rows):
        return True
    if not _lacks(target, document, sources, rows):
        return False
    lock = writer_lock(target)
    try:
        if changed := _lacks(target, document, sources, rows):  # nobody adds to it from here on
            _fill(target, document, sources, rows)
    finally:
        lock.release()
    return changed


def _made(target: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows) -> bool:
    """A new folder, complete or absent; False if another process has made it meanwhile.

    Raises BadInput, OSError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    with temporary(target.parent, is_folder=True) as (folder, _):
        _fill(folder, document, sources, rows)
        try:
            folder.rename(target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    sync_folder(target.parent)
    return True


def _lacks(
    target: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows
) -> bool:
    """Whether a run lacks something of the sources. Raises BadInput if it is another one's, or
    holds something that they lack.
    """
    where = f"-o {shown_path(target)}"
    if not (target / META).is_file():
        raise BadInput(f"{where}: exists, and is no run; choose another folder")
    meta = read_meta(target)
    if "merged" not in meta:
        raise BadInput(f"{where}: a run that was not merged; choose another folder")
    if any(meta.get(name, []) != plan for name, plan in sources[0].plan.items()):
        raise BadInput(f"{where}: merged from shards of another plan; choose another folder")
    there = {line for line, _ in read_lines(target)}
    known = {line for lines in rows.lines.values() for line in lines}
    if more := len(there - known):
        raise BadInput(
            f"{where}: holds {more} {'row' if more == 1 else 'rows'} that the given runs lack;"
            " choose another folder"
        )
    same = {**meta, "command": None} == {**json.loads(_json(document)), "command": None}
    return not same or there != known


def _fill(folder: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows) -> None:
    """All files of the run; each is replaced as a whole. run.json comes last."""
    make_folder(folder / LOGS)
    for source in sources:
        logs = (source.path / LOGS).glob("*.log") if is_folder(source.path / LOGS) else ()
        for log in sorted(logs):
            name = f"shard-{source.number}-{log.name}"
            rows.notes += _copy(log, folder / LOGS / name, LOG_CAP_BYTES)
    with temporary(folder, is_folder=False) as (unfinished_file, fd):
        for line in rows.in_order(sources[0].plan):
            write_all(fd, line)
        os.fsync(fd)
        unfinished_file.replace(folder / ROWS)
    write_whole(folder / META, _json(document))
    read_meta(folder)
    sync_folder(folder)


def _copy(source: Path, target: Path, most_bytes: int) -> list[str]:
    """A file as it is, up to so many bytes; what is missing of it, or nothing. What is no plain
    file is left alone.

    Raises OSError if it cannot be written.
    """
    try:
        with opened(source) as file:
            content = file.read(most_bytes + 1)
    except NotPlain:
        return []
    except OSError as error:
        return [f"{shown_path(source)}: cannot be read ({error.strerror}); it was left out"]
    write_whole(target, content[:most_bytes])
    longer = f"{shown_path(source)}: longer than {most_bytes >> 20} MiB; the rest was left out"
    return [longer] if len(content) > most_bytes else []


def _name(sources: Sequence[Source]) -> str:
    """As a run is named: the earliest start, the scenario, and eight digits that are the same for
    the same shards.
    """
    first = sources[0]
    scenario = {**first.spec.scenario, "source": None}
    same = {"scenario": scenario, "seed": first.spec.seed, "of": first.of, **first.plan}
    starts = (datetime.fromisoformat(one.spec.started_utc) for one in sources)
    stamp = min(starts).astimezone(UTC).strftime(STAMP)
    return f"{stamp}-{scenario['name']}-{sha256(_json(same).encode()).hexdigest()[:8]}"


def _json(document: object) -> str:
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
