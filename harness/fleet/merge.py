"""Merge runs of shards into one run: their rows by the plan, and one run.json."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, option, shown, unless_refused
from ..files.printable import spaced, visible
from ..files.safe_files import refuse_way_out, sweep, sync_folder, temporary, write_all, write_whole
from ..rows.record import Status
from ..rows.run_files import (
    META,
    PLANNED,
    ROWS,
    SCHEMA,
    Document,
    read_lines,
    read_meta,
    shown_path,
)
from ..rows.run_store import point_latest, writer_lock
from ..run.environments import unlike
from ..run.spec import RunSpec

STAMP = "%Y%m%dT%H%M%SZ"
DEVICE_FACTS = ("device_name", "cpu", "cores", "threads")
OF_PART = ("started_utc", "command", "memory_bytes", "environment", "calibration")
"""What a merged run keeps of each shard's run.json."""
WHERE = ("host", "device_uuid", "device_name")


@dataclass(frozen=True, slots=True)
class Source:
    """A shard to merge. `plan`: all cases, walls and studies, also those of other shards, in order.
    `part`: what `merged` of run.json says of it. `spec`: without what is planned.
    """

    path: Path
    spec: RunSpec
    plan: Document
    part: Document

    @property
    def name(self) -> str:
        """For a message."""
        return visible(self.path.name)[:48]

    @property
    def alike(self) -> Document:
        """What must be equal in all shards, beside their environments."""
        same = {name: getattr(self.spec, name) for name in ("device", "seed", "own_backends")}
        scenario = {**self.spec.scenario, "source": None}
        return {**same, "scenario": scenario, "number of shards": self.part["of"], **self.plan}


@dataclass(slots=True)
class Rows:
    """`lines`: those of each case, in order of their attempts; `statuses`: of the rows that count;
    `devices`: which of them measured something; `notes`: torn lines that were left out.
    """

    lines: dict[str, list[bytes]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    devices: list[Document] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def merge(
    paths: Sequence[Path], target: Path | None, root: Path, command: Sequence[str]
) -> dict[str, Any]:
    """One run of all rows of the runs at `paths`, which stay as they are.

    `target`: its folder; None for a new one in `root`, named after the plan, the same for the same
    shards. A merged run that is there gets what it lacks. Raises BadInput.
    """
    paths = list({path.resolve(): None for path in paths})
    sources = read_sources(paths)
    first, parts = sources[0], [source.part for source in sources]
    rows = read_rows(sources)
    target = target or root / _name(sources)
    if target.resolve() in paths:
        raise BadInput(f"-o {shown_path(target)}: one of the runs to merge; choose another folder")
    planned = [one["case"] for name in PLANNED for one in first.plan[name]]
    others = sorted(rows.lines.keys() - {*planned})
    lines = [line for case in (*planned, *others) for line in rows.lines.get(case, ())]
    document = _document(sources, rows, command, target.name)
    with unless_refused(shown_path(target), "choose another folder with -o"):
        refuse_way_out(target)
        changed = _write(target, document, lines)
    undone = Status.INTERRUPTED
    missing = [case for case in planned if rows.statuses.get(case, undone) == undone]
    notes, budgets = list(rows.notes), {part["memory_bytes"] for part in parts}
    if len(budgets) > 1:
        notes.append(
            f"the shards had different memory budgets, {spaced(min(budgets))} to"
            f" {spaced(max(budgets))} bytes, a share of what was free; give all the same with"
            " --memory-gib"
        )
    if not missing and target.parent == root:
        notes += filter(None, [point_latest(root, target.name)])
    numbers = [part["number"] for part in parts]
    absent = {*range(1, parts[0]["of"] + 1)} - {*numbers}  # one that is empty has no run
    return {
        "run": str(target),
        "shards": numbers,
        "of": parts[0]["of"],
        "planned": len(planned),
        "absent_shards": sorted(absent) if missing else [],
        "missing": missing,
        "changed": changed,
        "notes": notes,
    }


# ---- what is merged ------------------------------------------------------------------------------


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """In the order of their numbers. Raises BadInput unless they can be merged."""
    sources: dict[int, Source] = {}
    for path in paths:
        one = read_source(path)
        first = next(iter(sources.values()), one)
        if one.plan == first.plan:  # kept once: a thousand copies would not fit
            one = replace(one, plan=first.plan)
        _refuse_unlike(first, one)
        if (known := sources.setdefault(number := one.part["number"], one)) is not one:
            raise BadInput(
                f"{known.name} and {one.name}: both are shard {number}/{one.part['of']}; give one"
                " of them"
            )
    return [sources[number] for number in sorted(sources)]


def read_source(path: Path) -> Source:
    """Raises BadInput if it is no shard."""
    meta, where = read_meta(path), shown_path(path / META)
    if "merged" in meta:
        raise BadInput(f"{where}: made by merging already; give the shards that it was made of")
    if "shard" not in meta:
        raise BadInput(
            f"{where}: not a shard; wanted runs of `attnbench run SCENARIO --shard 1/2`, 2/2 and so"
            " on"
        )
    try:
        spec = RunSpec.stored(meta)
        datetime.fromisoformat(spec.started_utc)
        shard = spec.shard
        assert shard is not None
        plan = {n: _whole(getattr(spec, n), shard.elsewhere.get(n, ())) for n in PLANNED}
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{where}: not readable as a shard ({error}); wanted what `attnbench run --shard`"
            " writes; measure it again"
        ) from None
    part = {"run": meta["run"], "number": shard.number, "of": shard.of}
    part |= {name: getattr(spec, name) for name in OF_PART}
    return Source(
        path, spec.model_copy(update={n: [] for n in PLANNED} | {"shard": None}), plan, part
    )


def _whole(own: Sequence[Document], elsewhere: Sequence[Document]) -> list[Document]:
    """In the order of the plan: by group, or by place."""
    planned = sorted([*own, *elsewhere], key=lambda one: one.get("place", one.get("group", 0)))
    if len({one["case"] for one in planned}) < len(planned):
        raise ValueError("a case is planned twice")
    return [{name: one[name] for name in one if name != "place"} for one in planned]


def _refuse_unlike(one: Source, two: Source) -> None:
    """Raises BadInput unless both are shards of one plan, measured alike on devices of one kind."""
    both = f"{one.name} and {two.name}"
    for place, then, now in _differences("", one.alike, two.alike):
        raise BadInput(
            f"{both}: shards of different plans ({place}: {shown(then)} and {shown(now)});"
            f" wanted shards of one scenario, with the same options and {option('seed')}"
        )
    for found in unlike(one.spec.environment, two.spec.environment):
        what = "on different devices" if found.fact in DEVICE_FACTS else "in different environments"
        then, now = (visible(str(value))[:60] for value in (found.then, found.now))
        raise BadInput(
            f"{both}: measured {what} ({found.fact}: {then} and {now}); their rows are not"
            " comparable: measure one of them again where the other was measured"
        )


def _differences(place: str, one: Any, two: Any) -> Iterator[tuple[str, Any, Any]]:
    """The places at which two values of JSON are not equal; of plans, their lengths first."""
    if one == two:
        return
    if isinstance(one, dict) and isinstance(two, dict):
        for name in {**one, **two}:
            where = f"{place}.{name}" if place else name
            yield from _differences(where, one.get(name), two.get(name))
    elif place in PLANNED and len(one) != len(two):
        yield place, len(one), len(two)
    elif place in PLANNED and isinstance(one, list):
        for then, now in zip(one, two, strict=True):
            yield from _differences(place, then, now)
    else:
        yield place, str(one), str(two)


def read_rows(sources: Sequence[Source]) -> Rows:
    """The rows of all shards. Raises BadInput if two measured one case."""
    rows, whose = Rows(), dict[str, Source]()
    for source in sources:
        notes: list[str] = []
        for line, row in read_lines(source.path, notes):
            case = row["case"]
            if (known := whose.setdefault(case, source)) is not source:
                raise BadInput(
                    f"{known.name} and {source.name}: both measured {visible(case)}; measure one of"
                    " them again"
                )
            rows.lines.setdefault(case, []).append(line)
            rows.statuses[case] = str(row.get("status"))
            where = {name: row.get(name) for name in WHERE}
            if any(where.values()) and where not in rows.devices:
                rows.devices.append(where)
        rows.notes += [f"{source.name}: {note}" for note in notes]
    return rows


# ---- the merged run ------------------------------------------------------------------------------


def _document(sources: Sequence[Source], rows: Rows, command: Sequence[str], name: str) -> Document:
    """run.json: that of one run, and of which shards it was made."""
    first, parts = sources[0], [source.part for source in sources]
    own = {
        **first.plan,
        "command": list(command),
        "started_utc": min(part["started_utc"] for part in parts),
        "memory_bytes": min(part["memory_bytes"] for part in parts),
        "devices": rows.devices,
        "merged": parts,
    }
    merged = first.spec.model_copy(update=own).model_dump(exclude_unset=True, exclude={"shard"})
    return {"schema": SCHEMA, "run": name, **merged}


def _name(sources: Sequence[Source]) -> str:
    """As a run is named: the earliest start, the scenario, and eight digits that are the same for
    the same shards.
    """
    starts = (datetime.fromisoformat(one.spec.started_utc) for one in sources)
    digits = sha256(_json(sources[0].alike).encode()).hexdigest()[:8]
    stamp = min(starts).astimezone(UTC).strftime(STAMP)
    return f"{stamp}-{sources[0].spec.scenario['name']}-{digits}"


def _write(target: Path, document: Document, lines: Sequence[bytes]) -> bool:
    """Write the run; whether there was anything to write. Raises BadInput, OSError."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        with temporary(target.parent, is_folder=True) as (folder, _):  # complete or absent
            _fill(folder, document, lines)
            try:
                folder.rename(target)
                sync_folder(target.parent)
                return True
            except OSError as error:  # another process has made it meanwhile
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    if not _lacks(target, document, lines):
        return False
    lock = writer_lock(target)
    try:
        if changed := _lacks(target, document, lines):  # nobody adds to it from here on
            _fill(target, document, lines)
    finally:
        lock.release()
    return changed


def _lacks(target: Path, document: Document, lines: Sequence[bytes]) -> bool:
    """Whether a run lacks something of the sources. Raises BadInput if it is another one's, or
    holds something that they lack.
    """
    where, choose = f"-o {shown_path(target)}", "choose another folder"
    if not (target / META).is_file():
        raise BadInput(f"{where}: exists, and is no run; {choose}")
    meta = read_meta(target)
    if "merged" not in meta:
        raise BadInput(f"{where}: a run that was not merged; {choose}")
    if any(meta.get(name, []) != document[name] for name in PLANNED):
        raise BadInput(f"{where}: merged from shards of another plan; {choose}")
    there = {line for line, _ in read_lines(target)}
    if more := len(there - {*lines}):
        rows = "row" if more == 1 else "rows"
        raise BadInput(f"{where}: holds {more} {rows} that the given runs lack; {choose}")
    same = {**meta, "command": None} == {**json.loads(_json(document)), "command": None}
    return not same or there != {*lines}


def _fill(folder: Path, document: Document, lines: Sequence[bytes]) -> None:
    """Each file is replaced as a whole; run.json comes last."""
    with temporary(folder, is_folder=False) as (unfinished_file, fd):
        for line in lines:
            write_all(fd, line)
        os.fsync(fd)
        unfinished_file.replace(folder / ROWS)
    write_whole(folder / META, _json(document))
    read_meta(folder)
    sync_folder(folder)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
