"""Merge runs of shards into one run: their rows by the plan, and one run.json."""

import errno
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..files.errors import BadInput, option, shown, unless_refused
from ..files.printable import visible
from ..files.safe_files import refuse_way_out, sweep, sync_folder, temporary, write_whole
from ..rows.record import Status
from ..rows.run_files import META, PLANNED, ROWS, Document, read_lines, read_meta, shown_path
from ..rows.run_store import point_latest
from ..run.environments import unlike
from ..run.spec import RunSpec
from ..scenario.shards import Shard

STAMP = "%Y%m%dT%H%M%SZ"
DEVICE_FACTS = ("device_name", "cpu", "cores", "threads")
OF_PART = ("started_utc", "command", "memory_bytes", "environment", "calibration")
"""What a merged run keeps of each shard's run.json."""
WHERE = ("host", "device_uuid", "device_name")


@dataclass(frozen=True, slots=True)
class Source:
    """A shard to merge. `meta`: its run.json. `plan`: all cases, walls and studies, also those of
    other shards, in order.
    """

    path: Path
    meta: Document
    plan: Document
    shard: Shard

    @property
    def name(self) -> str:
        """For a message."""
        return visible(self.path.name)[:48]

    @property
    def alike(self) -> Document:
        """What must be equal in all shards, beside their environments."""
        same = {name: self.meta.get(name) for name in ("device", "seed", "own_backends")}
        counts = {name: len(self.plan[name]) for name in PLANNED}
        scenario = {**self.meta["scenario"], "source": None}
        planned = {one["case"]: one for name in PLANNED for one in self.plan[name]}
        of = {"number of shards": self.shard.of}
        return {**same, "scenario": scenario, **of, **counts, "plan": planned}

    @property
    def part(self) -> Document:
        """What `merged` of run.json says of it."""
        kept = {name: self.meta.get(name) for name in OF_PART}
        return {"run": self.meta["run"], **self.shard._asdict(), **kept}


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
    sources = read_sources({path.resolve(): None for path in paths})
    rows, first, parts = read_rows(sources), sources[0], [source.part for source in sources]
    planned = [one["case"] for name in PLANNED for one in first.plan[name]]
    others = sorted(rows.lines.keys() - {*planned})
    lines = b"".join(line for one in (*planned, *others) for line in rows.lines.get(one, ()))
    started_utc = min(part["started_utc"] for part in parts)
    if target is None:
        start = datetime.fromisoformat(started_utc).astimezone(UTC).strftime(STAMP)
        digits = sha256(_json(first.alike) + lines).hexdigest()[:8]
        target = root / f"{start}-{first.meta['scenario']['name']}-{digits}"
    document = {
        **{name: first.meta[name] for name in first.meta if name != "shard"},
        **first.plan,
        "run": target.name,
        "command": list(command),
        "started_utc": started_utc,
        "memory_bytes": min(part["memory_bytes"] for part in parts),
        "devices": rows.devices,
        "merged": parts,
    }
    with unless_refused(shown_path(target), "choose another folder with -o"):
        refuse_way_out(target)
        changed = _write(target, document, lines)
    undone = Status.INTERRUPTED
    missing = [case for case in planned if rows.statuses.get(case, undone) == undone]
    if not missing and target.parent == root:
        rows.notes += filter(None, [point_latest(root, target.name)])
    numbers = [source.shard.number for source in sources]
    absent = {*range(1, first.shard.of + 1)} - {*numbers}  # one that is empty has no run
    return {
        "path": str(target),
        "shards": numbers,
        "of": first.shard.of,
        "planned": len(planned),
        "absent_shards": sorted(absent) if missing else [],
        "missing": missing,
        "changed": changed,
        "notes": rows.notes,
    }


# ---- what is merged ------------------------------------------------------------------------------


def read_sources(paths: Iterable[Path]) -> list[Source]:
    """In the order of their numbers. Raises BadInput unless they can be merged."""
    sources: dict[int, Source] = {}
    for path in paths:
        one = read_source(path)
        first = next(iter(sources.values()), one)
        _refuse_unlike(first, one)
        one = replace(one, plan=first.plan)  # kept once: a thousand copies would not fit
        if (known := sources.setdefault(one.shard.number, one)) is not one:
            raise BadInput(
                f"{known.name} and {one.name}: both are shard {one.shard}; give one of them"
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
        plan = {n: _whole([*getattr(spec, n), *shard.elsewhere.get(n, ())]) for n in PLANNED}
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{where}: not readable as a shard ({error}); wanted what `attnbench run --shard`"
            " writes; measure it again"
        ) from None
    return Source(path, meta, plan, Shard(shard.number, shard.of))


def _whole(parts: Sequence[Document]) -> list[Document]:
    """In the order of the plan: by group, or by place."""
    planned = sorted(
        parts, key=lambda one: one["place"] if "place" in one else one.get("group") or 0
    )
    if len({one["case"] for one in planned}) < len(planned):
        raise ValueError("a case is planned twice")
    return [{name: one[name] for name in one if name != "place"} for one in planned]


def _refuse_unlike(one: Source, two: Source) -> None:
    """Raises BadInput unless both are shards of one plan, measured alike on devices of one kind."""
    both = f"{one.name} and {two.name}"
    then, now = dict(_values("", one.alike)), dict(_values("", two.alike))
    for place in {**then, **now}:
        if (before := then.get(place)) != (after := now.get(place)):
            raise BadInput(
                f"{both}: shards of different plans ({place}: {shown(before)} and {shown(after)});"
                f" wanted shards of one scenario, with the same options and {option('seed')}"
            )
    for found in unlike(one.meta["environment"], two.meta["environment"]):
        what = "on different devices" if found.fact in DEVICE_FACTS else "in different environments"
        old, new = (visible(str(value))[:60] for value in (found.then, found.now))
        raise BadInput(
            f"{both}: measured {what} ({found.fact}: {old} and {new}); their rows are not"
            " comparable: measure one of them again where the other was measured"
        )


def _values(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values of a document of JSON, by where they are; a list is one value."""
    if isinstance(value, dict):
        for name in value:
            yield from _values(f"{place}.{name}" if place else name, value[name])
    else:
        yield place, str(value) if isinstance(value, list) else value


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
        raise BadInput(f"{where}: exists, and is no run; {choose}")
    meta, made = read_meta(target), json.loads(_json(document))
    there = {line for line, _ in read_lines(target)}
    if {**meta, "command": 0} != {**made, "command": 0} or there != {*lines.splitlines(True)}:
        raise BadInput(f"{where}: another run, or one with other rows; {choose}")
    return False


def _json(document: Document) -> bytes:
    return (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
