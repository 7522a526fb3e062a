"""Searches of the wall and findings of studies as tidy frames; that of the cases is
`attnbench.load`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..data.columns import COUNT, NESTED, TEXT, dtypes_of
from ..data.load import as_frame
from ..data.run_meta import Run, not_reached
from ..subjects.wall import longest

if TYPE_CHECKING:
    import pandas as pd

ANSWER = {"longest_seq_len": COUNT, "longest_how": TEXT}
"""Of a search, as pages have it."""
ABOUT = ("study", "case", "device", "status", "reason")
"""Of a study, before what it found."""


def walls(run: Run) -> "pd.DataFrame":
    """A row per wall, also of one that was not reached."""
    kinds = {**dtypes_of("wall"), **ANSWER}
    rows = [{**row, **_answer(row)} for row in run.walls]
    rows += [_not_reached(run, one) for one in run.missing_walls]
    columns = sorted(kinds, key=lambda name: kinds[name] == NESTED)
    more = {name for row in rows for name in row if name.startswith("parameter_")}
    return as_frame(rows, [*columns, *sorted(more)], kinds, run)


def _answer(row: dict[str, Any]) -> dict[str, Any]:
    """With the backend's parameters; without a length if nothing is known to fit."""
    found, given = longest(row), (row["parameters"] or {}).items()
    known = {} if found.n is None else {"longest_seq_len": found.n, "longest_how": found.how}
    return known | {f"parameter_{name}": value for name, value in given}


def studies(run: Run, name: str | None = None) -> "pd.DataFrame":
    """A row per finding, of one study or of all; of a study that found nothing a row with why."""
    rows = [*_findings(run, name)]
    columns = dict.fromkeys((*ABOUT, *(field for row in rows for field in row)))
    return as_frame(rows, [*columns], dict.fromkeys(ABOUT, TEXT), run)


def _findings(run: Run, name: str | None) -> Iterator[dict[str, Any]]:
    for row in (*run.studies, *(_not_reached(run, one) for one in run.missing_studies)):
        if name in (None, row["study"]):
            about = {**{field: row[field] for field in ABOUT}, **(row.get("part") or {})}
            for found in row.get("findings") or [{}]:
                yield {**about, **found}


def _not_reached(run: Run, planned: dict[str, Any]) -> dict[str, Any]:
    return {"device": run.meta["device"], **planned, **not_reached("it was looked for")}
