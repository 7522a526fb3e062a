"""The rows of several runs: which of them there are, each once, and where they stand."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ...files.errors import BadInput
from ...files.printable import visible
from ...files.safe_files import open_plain
from ...rows.record import Status
from ...rows.run_files import ROWS, read_lines, shown_path
from .sources import PLANS, Source

WHERE = ("host", "device_uuid", "device_name")


class Place(NamedTuple):
    """A line of a rows.jsonl."""

    path: Path
    offset: int
    length: int
    digest: bytes


@dataclass(slots=True)
class Rows:
    """`lines`: those of each case, in order of their attempts; `statuses`: of the rows that count;
    `devices`: which of them measured something; `notes`: torn lines that were left out.
    """

    lines: dict[str, list[Place]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.lines.values()))


def read_all(sources: Sequence[Source]) -> Rows:
    """The rows of all runs, each once. Raises BadInput if two measured one case apart."""
    merged = Rows()
    whose: dict[str, Source] = {}
    for source in sources:
        own = _read(source)
        merged.notes += own.notes
        merged.devices += [one for one in own.devices if one not in merged.devices]
        for case, lines in own.lines.items():
            known = merged.lines.setdefault(case, [])
            shared = min(len(known), len(lines))
            if [one.digest for one in known[:shared]] != [one.digest for one in lines[:shared]]:
                raise BadInput(
                    f"{whose[case].name} and {source.name}: both measured {visible(case)}, with"
                    " different results; give one of them"
                )
            if len(lines) > len(known):
                merged.lines[case], whose[case] = lines, source
                merged.statuses[case] = own.statuses[case]
    return merged


def rows_of(path: Path) -> set[bytes]:
    """The digests of a run's rows. Raises BadInput."""
    return {sha256(line).digest() for line, _ in read_lines(path)}


def in_order(rows: Rows, plan: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Place]:
    """By the plan, whichever run they are from; what is not in it comes last."""
    planned = [one["case"] for name in PLANS for one in plan[name]]
    known = set(planned)
    others = sorted(case for case in rows.lines if case not in known)
    return [line for case in (*planned, *others) for line in rows.lines.get(case, ())]


def read_lines_at(places: Sequence[Place]) -> Iterator[bytes]:
    """The lines themselves. Raises BadInput if one has changed."""
    for path, some in groupby(places, key=lambda place: place.path):
        fd = open_plain(path)
        try:
            for place in some:
                line = os.pread(fd, place.length, place.offset)
                if sha256(line).digest() != place.digest:
                    raise BadInput(
                        f"{shown_path(path)}: was changed while it was merged; merge again"
                    )
                yield line
        finally:
            os.close(fd)


def unfinished(rows: Rows, plan: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """What has no row, or was interrupted, in the order of the plan."""
    planned = (one["case"] for name in PLANS for one in plan[name])
    return [
        case
        for case in planned
        if rows.statuses.get(case, Status.INTERRUPTED) == Status.INTERRUPTED
    ]


def _read(source: Source) -> Rows:
    rows, notes = Rows(), list[str]()
    offset = 0
    for line, row in read_lines(source.path, notes):
        case = row["case"]
        digest = sha256(line).digest()
        place = Place(source.path / ROWS, offset, len(line), digest)
        offset += len(line)
        rows.lines.setdefault(case, []).append(place)
        rows.statuses[case] = str(row.get("status"))
        where = {name: row.get(name) for name in WHERE}
        if any(where.values()) and where not in rows.devices:
            rows.devices.append(where)
    rows.notes = [f"{source.name}: {note}" for note in notes]
    return rows
