"""Merge runs of shards into one run: their rows by the plan, and one run.json."""

import errno
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, option, shown, unless_refused
from ..files.printable import spaced, visible
from ..files.safe_files import refuse_way_out, sweep, sync_folder, temporary, write_whole
from ..rows.record import Status
from ..rows.run_files import META, PLANNED, ROWS, Document, read_lines, read_meta, shown_path
from ..rows.run_store import point_latest
from ..run.engine import unlike
from ..run.spec import RunSpec

STAMP = "%Y%m%dT%H%M%SZ"
DEVICE_FACTS = ("device_name", "cpu", "cores", "threads")
OF_PART = ("started_utc", "command", "memory_bytes", "environment", "calibration")
"""What a merged run keeps of each shard's run.json."""
WHERE = ("host", "device_uuid", "device_name")


@dataclass(frozen=True, slots=True)
class Source:
    """A shard to merge. `meta`: its run.json without what is planned. `plan`: all cases, walls and
    studies, also those of other shards, in order.
    """

    path: Path
    meta: Document
    plan: Document
    number: int
    of: int

    @property
    def name(self) -> str:
        """For a message."""
        return visible(self.path.name)[:48]

    @property
    def alike(self) -> Document:
        """What must be equal in all shards, beside their environments."""
        same = {name: self.meta.get(name) for name in ("device", "seed", "own_backends")}
        scenario = {**self.meta["scenario"], "source": None}
        return {**same, "scenario": scenario, "number of shards": self.of, **self.plan}

    @property
    def part(self) -> Document:
        """What `merged` of run.json says of it."""
        kept = {name: self.meta.get(name) for name in OF_PART}
        return {"run": self.meta["run"], "number": self.number, "of": self.of, **kept}


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

    `target`: its folder; None for a new one in `root`, with the same name for the same rows. Raises
    BadInput.
    """
    paths = list({path.resolve(): None for path in paths})
    sources = read_sources(paths)
    rows, first, parts = read_rows(sources), sources[0], [source.part for source in sources]
    planned = [one["case"] for name in PLANNED for one in first.plan[name]]
    others = sorted(rows.lines.keys() - {*planned})
    lines = b"".join(line for one in (*planned, *others) for line in rows.lines.get(one, ()))
    started_utc = min(part["started_utc"] for part in parts)
    if target is None:
        start = datetime.fromisoformat(started_utc).astimezone(UTC).strftime(STAMP)
        digits = sha256(_json(first.alike) + lines).hexdigest()[:8]
        target = root / f"{start}-{first.meta['scenario']['name']}-{digits}"
    budgets = {part["memory_bytes"] for part in parts}
    document = {
        **first.meta,
        "run": target.name,
        "command": list(command),
        "started_utc": started_utc,
        "memory_bytes": min(budgets),
        "devices": rows.devices,
        **first.plan,
        "merged": parts,
    }
    with unless_refused(shown_path(target), "choose another folder with -o"):
        refuse_way_out(target)
        changed = _write(target, document, lines)
    undone = Status.INTERRUPTED
    missing = [case for case in planned if rows.statuses.get(case, undone) == undone]
    notes = list(rows.notes)
    if len(budgets) > 1:
        notes.append(
            f"the shards had different memory budgets, {spaced(min(budgets))} to"
            f" {spaced(max(budgets))} bytes, a share of what was free; give all the same with"
            " --memory-gib"
        )
    if not missing and target.parent == root:
        notes += filter(None, [point_latest(root, target.name)])
    numbers = [source.number for source in sources]
    absent = {*range(1, first.of + 1)} - {*numbers}  # one that is empty has no run
    return {
        "run": str(target),
        "shards": numbers,
        "of": first.of,
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
        if (known := sources.setdefault(one.number, one)) is not one:
            raise BadInput(
                f"{known.name} and {one.name}: both are shard {one.number}/{one.of}; give one of"
                " them"
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
    rest = {name: meta[name] for name in meta if name not in (*PLANNED, "shard")}
    return Source(path, rest, plan, shard.number, shard.of)


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
    for found in unlike(one.meta["environment"], two.meta["environment"]):
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
        then, now = (str(x) if isinstance(x, list) else x for x in (one, two))
        yield place, then, now


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


def _write(target: Path, document: Document, lines: bytes) -> bool:
    """A new folder, complete or absent; False if it is there already. Raises BadInput, OSError."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        with temporary(target.parent, is_folder=True) as (folder, _):
            write_whole(folder / ROWS, lines)
            write_whole(folder / META, _json(document))
            read_meta(folder)
            try:
                folder.rename(target)
                sync_folder(target.parent)
                return True
            except OSError as error:  # another process has made it meanwhile
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    where, choose = f"-o {shown_path(target)}", "choose another folder"
    if not (target / META).is_file():
        raise BadInput(f"{where}: exists and holds something else; {choose}")
    meta, made = read_meta(target), json.loads(_json(document))
    there = {line for line, _ in read_lines(target)}
    if {**meta, "command": 0} != {**made, "command": 0} or there != {*lines.splitlines(True)}:
        raise BadInput(f"{where}: another run, or one with other rows; {choose}")
    return False


def _json(document: Document) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
