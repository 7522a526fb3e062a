"""A run that is resumed: what its files plan, what its rows leave of that, and what stands against
it, said before any process is started.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..cases.case import case_of, groups_of, study_of, wall_of
from ..files.errors import BadInput, first_line
from ..files.printable import visible
from ..rows.record import KINDS, RETRIED, Status
from ..rows.run_files import META, PLANNED, read_meta, read_rows, shown_path
from ..scenario.shards import Units
from ..store.run_store import point_latest
from .listener import Begun, Listener
from .run_rows import PreviousRow, RunResult
from .worker_pool import RunConfig

WANTED = {"seed": int, "memory_bytes": int, "environment": dict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """`previous`: the row that counts of each case. `retry_failed`: whether failures are measured
    again, as what was interrupted is.
    """

    path: Path
    meta: Mapping[str, Any]
    previous: Mapping[str, PreviousRow]
    retry_failed: bool

    @classmethod
    def read(cls, path: Path, *, retry_failed: bool) -> Self:
        """Raises BadInput for what is no run, or one that is never resumed."""
        meta = read_meta(path)
        if meta.get("kernels"):
            raise BadInput(f"--resume: {path.name} is an audit of kernels of an older version")
        if meta.get("court"):
            raise BadInput(f"--resume: {path.name} is a court of backends, which has one start")
        previous = {
            row["case"]: PreviousRow(row["status"], row["attempt"])
            for row in read_rows(path)
            if row["kind"] in KINDS
        }
        return cls(path=path, meta=meta, previous=previous, retry_failed=retry_failed)

    def read_again(self) -> Self:
        return self.read(self.path, retry_failed=self.retry_failed)

    @property
    def backends(self) -> list[str]:
        """All that run.json plans."""
        planned = (*self.meta["cases"], *self.meta.get("walls", ()))
        return [fields["backend"] for fields in planned]

    @property
    def left_backends(self) -> list[str]:
        return [fields["backend"] for kind in PLANNED[:2] for fields in self.left(kind)]

    @property
    def units(self) -> Units:
        """What is left to measure."""
        walls, studies = map(wall_of, self.left("walls")), map(study_of, self.left("studies"))
        return Units(groups_of(self.left("cases")), tuple(walls), tuple(studies))

    def left(self, kind: str) -> list[Mapping[str, Any]]:
        """Of `cases`, `walls` or `studies` of run.json those without a final row."""
        repeated = {Status.INTERRUPTED, *(RETRIED if self.retry_failed else ())}
        final = {case for case, row in self.previous.items() if row.status not in repeated}
        return [fields for fields in self.meta.get(kind, ()) if fields["case"] not in final]

    def finished_result(self, listener: Listener) -> RunResult | None:
        """The result if nothing is left, said to the listener; None if something is."""
        planned = {kind: len(self.meta.get(kind, ())) for kind in PLANNED}
        count = sum(planned.values())
        if not count or any(map(self.left, PLANNED)):
            return None
        statuses = Counter(row.status for row in self.previous.values())
        failed = sum(statuses[status] for status in RETRIED)
        remarks = [f"{failed} failed; --retry-failed measures again what did"] if failed else []
        listener.begin(Begun(self.path, planned, count, remarks))
        if remark := point_latest(self.path.parent, self.path.name):
            listener.remark(remark)
        return RunResult(path=self.path, statuses=statuses)

    def refuse_lacking(self) -> None:
        """Raises BadInput if run.json lacks something that only measuring needs, or plans what only
        earlier versions measured.
        """
        meta = self.meta
        if meta.get("environments") or any(one.get("replica") for one in meta["cases"]):
            raise BadInput(
                f"--resume: {self.path.name} is of an older version, which measured each case in"
                " several interpreters or several times; start another run"
            )
        try:
            for name, kind in WANTED.items():
                if type(meta[name]) is not kind:
                    raise TypeError(f"{name}: wanted {kind.__name__}")
            RunConfig.of(meta)
            for fields in meta["cases"]:
                case_of(fields)
                if type(fields["group"]) is not int:
                    raise TypeError("group: wanted int")
            for fields in meta.get("walls", ()):
                wall_of(fields)
            for fields in meta.get("studies", ()):
                study_of(fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            found = visible(first_line(error))
            raise BadInput(
                f"{shown_path(self.path / META)}: {found}; the run cannot be resumed: start another"
            ) from None
