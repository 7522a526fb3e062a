"""Merge runs of shards into one run, and suites of shards into one suite."""

import errno
import json
import os
import re
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
    SUITE,
    read_lines,
    read_meta,
    read_suite,
    shown_path,
)
from ..store.run_store import LOGS, point_latest, write_suite, writer_lock
from ..store.suites import is_suite, run_state, runs_by_entry, suite_state
from .merge_sources import (
    Rows,
    Source,
    planned_in,
    read_all,
    read_source,
    read_sources,
    refuse_unlike,
)

RUN_NAME = re.compile(r"\d{8}T\d{6}Z-(?P<name>[a-z0-9_-]+)-[0-9a-f]{8}", re.ASCII)
STAMP = "%Y%m%dT%H%M%SZ"


def merge(
    paths: Sequence[Path],
    target: Path | None,
    root: Path,
    command: Sequence[str],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One run of all rows of the runs at `paths`, which stay as they are.

    `target`: its folder; None for a new one in `root`, named after the plan, the same for the same
    shards. A merged run that is there gets what it lacks. `more`: fields of its run.json. Raises
    BadInput.
    """
    paths = list({path.resolve(): None for path in paths})
    sources = read_sources(paths)
    rows = read_all(sources)
    plan = sources[0].plan
    by_number = {part["number"]: part for source in sources for part in source.parts}
    parts = [by_number[number] for number in sorted(by_number)]
    if target is None:
        target = root / _name(sources[0], parts)
    if target.resolve() in paths:
        raise BadInput(f"-o {shown_path(target)}: one of the runs to merge; choose another folder")
    document = {
        **_document(sources, parts, rows),
        **(more or {}),
        "command": list(command),
    }
    with unless_refused(shown_path(target), "choose another folder with -o"):
        refuse_way_out(target)
        changed = _write(target, document, sources, rows)
    missing = rows.unfinished(plan)
    notes = list(rows.notes)
    budgets = {part["memory_bytes"] for part in parts}
    if len(budgets) > 1:
        notes.append(
            f"the shards had different memory budgets, {spaced(min(budgets))} to"
            f" {spaced(max(budgets))} bytes, a share of what was free; give all the same with"
            " --memory-gib"
        )
    if not missing and target.parent == root and not more:
        notes += filter(None, [point_latest(root, target.name)])
    of = sources[0].of
    return {
        "run": str(target),
        "shards": sorted(by_number),
        "of": of,
        "planned": len(planned_in(plan)),
        # a shard that is empty has no run
        "absent_shards": sorted({*range(1, of + 1)} - by_number.keys()) if missing else [],
        "missing": missing,
        "changed": changed,
        "notes": notes,
    }


def merge_suites(
    paths: Sequence[Path], target: Path | None, root: Path, command: Sequence[str]
) -> list[dict[str, Any]]:
    """One suite of all runs of the suites at `paths`: a merged run per entry. Raises BadInput."""
    paths = list({path.resolve(): None for path in paths})
    documents = [read_suite(path) for path in paths]
    for path, document in zip(paths, documents, strict=True):
        if "shard" not in document:
            raise BadInput(
                f"{shown_path(path / SUITE)}: not a shard; wanted suites of `attnbench run SUITE"
                " --shard 1/2`, 2/2 and so on"
            )
        if _suite_plan(document) != _suite_plan(documents[0]):
            raise BadInput(
                f"{paths[0].name} and {path.name}: shards of different suites; wanted one suite,"
                " with the same options and --seed"
            )
    runs = [runs_by_entry(path) for path in paths]
    of_entry = {
        number: [of[number] for of in runs if number in of]
        for number in range(len(documents[0]["entries"]))
    }
    for sources in of_entry.values():
        if sources:
            read_sources(sources)
    document = {name: value for name, value in documents[0].items() if name != "shard"}
    document |= {"command": list(command), "merged": [path.name for path in paths]}
    target = target or root / _suite_name(documents)
    document |= {"schema": SCHEMA, "suite": target.name}
    next_step = "choose another folder with -o, or merge again once it can"
    with unless_refused(shown_path(target), next_step):
        refuse_way_out(target)
        if not target.exists():
            target.mkdir(parents=True)
            write_suite(target, document)
        if not is_suite(target) or "merged" not in read_suite(target):
            raise BadInput(
                f"{shown_path(target)}: exists, and is no merged suite; choose another -o"
            )
        merged = _merge_entries(target, document, documents, of_entry, command)
        write_suite(target, document)
    if merged and target.parent == root and suite_state(target).has_ended:
        merged[-1]["notes"] += filter(None, [point_latest(root, target.name)])
    return merged


def _merge_entries(
    target: Path,
    document: Mapping[str, Any],
    documents: Sequence[Mapping[str, Any]],
    of_entry: Mapping[int, Sequence[Path]],
    command: Sequence[str],
) -> list[dict[str, Any]]:
    """A merged run per entry, and how each ended in `document`. Raises BadInput."""
    known = runs_by_entry(target)
    merged = []
    for number, sources in of_entry.items():
        entry = document["entries"][number]
        if not sources:
            refused = [one["entries"][number] for one in documents]
            entry |= next((one for one in refused if one.get("ended") == "refused"), {})
            continue
        one = merge(sources, known.get(number), target, command, {"suite_entry": number})
        state = run_state(Path(one["run"]))
        ended = "finished" if state.is_finished else "interrupted"
        reason = "" if state.is_finished else "a shard is missing or was interrupted"
        entry |= {"run": state.path.name, "ended": ended, "reason": reason}
        entry["statuses"] = dict(state.statuses)
        merged.append(one)
    return merged


def _document(
    sources: Sequence[Source], parts: Sequence[Mapping[str, Any]], rows: Rows
) -> dict[str, Any]:
    """run.json of the merged run: that of one run, and of which shards it was made."""
    first = sources[0].meta
    kept = ("attnbench", "scenario", "own_backends", "device", "seed", "environment")
    return {
        "schema": SCHEMA,
        **{name: first[name] for name in kept if name in first},
        "started_utc": min(str(part["started_utc"]) for part in parts),
        "memory_bytes": min(part["memory_bytes"] for part in parts),
        "environments": first.get("environments", []),
        "calibration": first.get("calibration"),
        **sources[0].plan,
        "devices": rows.devices,
        "merged": list(parts),
    }


def _write(
    target: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows
) -> bool:
    """Write the run; whether there was anything to write. Raises BadInput, OSError."""
    document = {"schema": SCHEMA, "run": target.name, **document}
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
    refuse_unlike(read_source(target), sources[0])
    there = {line for line, _ in read_lines(target)}
    known = {line for lines in rows.lines.values() for line in lines}
    if more := len(there - known):
        raise BadInput(
            f"{where}: holds {more} {'row' if more == 1 else 'rows'} that the given runs lack;"
            " choose another folder, or give it as a run too"
        )
    same = {**meta, "command": None} == {**json.loads(_json(document)), "command": None}
    return not same or there != known


def _fill(folder: Path, document: Mapping[str, Any], sources: Sequence[Source], rows: Rows) -> None:
    """All files of the run; each is replaced as a whole. run.json comes last."""
    make_folder(folder / LOGS)
    for source in sources:
        is_shard = "merged" not in source.meta
        number = source.parts[0]["number"]
        logs = (source.path / LOGS).glob("*.log") if is_folder(source.path / LOGS) else ()
        for log in sorted(logs):
            name = f"shard-{number}-{log.name}" if is_shard else log.name
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


def _name(first: Source, parts: Sequence[Mapping[str, Any]]) -> str:
    meta = first.meta
    scenario = {**meta["scenario"], "source": None}
    same = {"scenario": scenario, "seed": meta["seed"], "of": first.of, **first.plan}
    return _named(parts, meta["scenario"]["name"], same)


def _suite_name(documents: Sequence[Mapping[str, Any]]) -> str:
    found = RUN_NAME.fullmatch(str(documents[0].get("suite")))
    name = found["name"] if found else "suite"
    try:
        return _named(documents, name, _suite_plan(documents[0]))
    except (KeyError, ValueError):
        raise BadInput(
            f"{SUITE}: no time at which it was started; merge its runs instead"
        ) from None


def _named(parts: Sequence[Mapping[str, Any]], name: str, same: object) -> str:
    """As a run or a suite is named: the earliest start, the name, and eight digits that are the
    same for the same shards. Raises KeyError, ValueError.
    """
    starts = (datetime.fromisoformat(str(one["started_utc"])) for one in parts)
    stamp = min(starts).astimezone(UTC).strftime(STAMP)
    return f"{stamp}-{name}-{sha256(_json(same).encode()).hexdigest()[:8]}"


def _suite_plan(document: Mapping[str, Any]) -> Any:
    planned = ("scenario", "only", "within", "skip")
    entries = [[entry[name] for name in planned] for entry in document["entries"]]
    copies = [document["copies"]] if "copies" in document else []
    return document.get("seed"), (document.get("shard") or {}).get("of"), entries, *copies


def _json(document: object) -> str:
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
