"""Rows of earlier runs that answer a question: same device, same torch, same problem."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...harness.rows.plans import reads_a_cache
from ...harness.rows.run_files import BadRun, read_meta
from ..data.load import rows_of
from ..data.row_groups import Row
from ..data.run_meta import UNFINISHED, Run, device_identity, read_run
from ..formatting import plural
from .asked import Fields, Implementation, key_over, length

WITHOUT_CALL = ("unavailable", "unsupported")  # statuses that say nothing about inputs
EARLIER = (
    "of an earlier version, whose inputs had another order in memory than a model's; add --measure"
)


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
    """The rows of runs, newest first, by problem, backend and length.

    `orders`: by backend, the order in memory that its inputs must have had. `earlier`: the places
    and lengths of rows of another.
    """

    orders: Mapping[str, str] = field(default_factory=dict)
    found: dict[tuple[Any, ...], dict[int, Stored]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    earlier: set[tuple[Any, ...]] = field(default_factory=set)
    _loaded: dict[int, dict[str, Row]] = field(default_factory=dict)

    def loaded(self, run: Run) -> dict[str, Row]:
        """A run's rows by case, with what is known of their device's noise, as pages have them."""
        if id(run) not in self._loaded:
            self._loaded[id(run)] = {row["case"]: row for row in rows_of([run])}
        return self._loaded[id(run)]

    def of(self, problem: Fields) -> Mapping[str, Stored]:
        """Per backend, the newest row of this problem; one without a time if there is no other, and
        none whose calls found the keys in caches if those of another backend did not.
        """
        over = {name: self.over_lengths(problem, name) for name in self.orders}
        n = length(problem)
        alike = alike_in_caches([rows[n] for rows in over.values() if n in rows])
        return {one.row["backend"]: one for one in alike}

    def timed(self, problems: Iterable[Fields]) -> bool:
        """Whether some backend has a time of one of these problems."""
        rows = (one.row for problem in problems for one in self.of(problem).values())
        return any(row["status"] == "ok" and not lacks_time(row) for row in rows)

    def over_lengths(self, problem: Fields, backend: str) -> Mapping[int, Stored]:
        """A backend's newest row of this problem at each length."""
        return self.found.get((key_over(problem), backend), {})

    def add(self, run: Run) -> None:
        """Rows of a run that is older than those before it."""
        self.runs.append(run)
        for row in run.rows:
            if row["status"] in UNFINISHED or row.get("python") is not None or row.get("twin"):
                continue
            place = (key_over(row), row["backend"])
            if not self.comparable(row):
                self.earlier.add((*place, length(row)))
                continue
            lengths = self.found.setdefault(place, {})
            newer = lengths.get(length(row))
            better = newer is None or (lacks_time(newer.row) and not lacks_time(row))
            if better or (newer and is_warm(newer.row) and row.get("kv_copies")):
                lengths[length(row)] = Stored(run=run, row=row)

    def comparable(self, row: Fields) -> bool:
        """Whether the row's inputs lay as they must; rows of the first versions do not say."""
        wanted, found = self.orders.get(row["backend"]), row.get("input_order") or "heads"
        return wanted in (None, found) or row["status"] in WITHOUT_CALL


def lacks_time(row: Fields) -> bool:
    """Whether the case ran and its time was not asked for, as with `measure: [memory]`."""
    return row["status"] == "ok" and not row.get("block_ms")


def is_warm(row: Fields) -> bool:
    """Whether all its calls read the same keys and values, which caches may have held, where those
    of a model's layers come from memory.
    """
    same = row["status"] == "ok" and row["device"] == "cpu" and not row.get("kv_copies")
    return same and not lacks_time(row) and reads_a_cache(row)


def alike_in_caches(stored: Collection[Stored]) -> Collection[Stored]:
    """Without those that are warm, if others are known not to be."""
    some_cold = any(one.row.get("kv_copies") for one in stored)
    return [one for one in stored if not is_warm(one.row)] if some_cold else stored


def stored_rows(
    folders: Iterable[Path],
    device: Device,
    problems: Iterable[Fields],
    implementations: Iterable[Implementation],
) -> StoredRows:
    """From run folders, newest first. Reads the rows of those only that planned something wanted.

    A folder that cannot be read is left out, with a note; so are rows of inputs in another order.
    """
    wanted = {key_over(problem) for problem in problems}
    rows = StoredRows(orders={one.backend: one.input_order for one in implementations})
    for folder in folders:
        try:
            meta = read_meta(folder)
            if meta.get("court") or not device.measured(meta):
                continue
            mine = (one for one in meta["cases"] if one["backend"] in rows.orders)
            if any(key_over(one) in wanted for one in mine):
                rows.add(read_run(folder))
        except BadRun as error:
            rows.notes.append(f"left out: {error}")
    earlier = [
        (of, backend, n)
        for of, backend, n in rows.earlier
        if of in wanted and n not in rows.found.get((of, backend), {})
    ]
    if earlier:
        rows.notes.append(f"left out: {plural(len(earlier), 'row')} {EARLIER}")
    return rows
