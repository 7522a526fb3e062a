"""Whether a run's files are enough to go on with it, said before any process is started."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..cases.case import case_of, study_of, wall_of
from ..files.errors import BadInput, first_line
from ..files.printable import visible
from ..rows.record import KINDS
from ..rows.run_files import META, read_rows, shown_path
from .run_rows import PreviousRow
from .worker_pool import RunConfig

WANTED = {"seed": int, "memory_bytes": int, "environment": dict}


def check_resumable(run: Path, meta: Mapping[str, Any]) -> None:
    """Raises BadInput if run.json lacks something that only measuring needs, or a row is broken."""
    try:
        for name, kind in WANTED.items():
            if type(meta[name]) is not kind:
                raise TypeError(f"{name}: wanted {kind.__name__}")
        RunConfig.of(meta)
        for fields in meta["cases"]:
            case_of(fields)
            if type(fields["group"]) is not int:
                raise TypeError("group: wanted int")
            if type(fields.get("replica_of")) not in (int, type(None)):
                raise TypeError("replica_of: wanted int")
        for fields in meta.get("walls", ()):
            wall_of(fields)
        for fields in meta.get("studies", ()):
            study_of(fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found = first_line(error)
        raise BadInput(
            f"{shown_path(run / META)}: {visible(found)}; the run cannot be resumed: start another"
        ) from None
    previous_rows(run)


def previous_rows(run: Path) -> dict[str, PreviousRow]:
    """The row that counts of each case. Raises BadInput."""
    return {
        row["case"]: PreviousRow(row["status"], row["attempt"])
        for row in read_rows(run)
        if row["kind"] in KINDS
    }
