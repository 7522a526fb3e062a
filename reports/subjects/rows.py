"""Every planned case, one row each."""

from collections.abc import Iterator, Sequence
from typing import Any

from ..data.columns import COLUMNS
from ..data.processor_time import disturbed
from ..data.row_groups import AXES, Row, axis_text, axis_title, case_key, problem, value_text
from ..data.run_meta import Meta
from ..data.typed import with_case
from ..elements import Block, Marked, Table, note, table_of
from ..formatting import STATUS_WORDS, kernel_text
from . import Subject

TITLE = "All rows"
SECTION = "more"
ORDER = 70
_KEYS = (
    *("backend", *AXES, "status"),
    *(name for name, column in COLUMNS.items() if column.title),
    *("kernel", "stop", "processes", "blocks", "samples", "attempt", "reason"),
)
_NEVER_CONSTANT = ("backend", "seq_len", "status", "latency_ms", "peak_bytes")
MOST_ROWS = 2000


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    if not rows:
        return Subject(lacking="The plan has no case.")
    return Subject(blocks=tuple(_blocks(rows, meta)))


def readable(rows: Sequence[Row]) -> tuple[list[str], tuple[str, ...], list[tuple[str, ...]]]:
    """What is equal in all rows, the titles of the other columns, and their cells."""
    kernels = (kernel_text(row.get("kernel"), row.get("kernel_generation")) for row in rows)
    rows = [
        row
        | problem(row)
        | {"kernel": kernel or None}
        # a quiet call's says nothing that its latency does not
        | ({} if disturbed(row) else {"processor_ms": None})
        for row, kernel in zip(rows, kernels, strict=True)
    ]
    constant = [
        key
        for key in _KEYS
        if key not in _NEVER_CONSTANT and len({row.get(key) for row in rows}) <= 1
    ]
    columns = [key for key in _KEYS if key not in constant]
    same = [text for key in constant if rows and (text := _equal_text(key, rows[0].get(key)))]
    cells = [tuple(_cell(key, row.get(key)) for key in columns) for row in rows]
    return same, tuple(map(_title, columns)), cells


def _equal_text(key: str, value: Any) -> str:
    if key in AXES:
        return axis_text(key, value)
    text = _cell(key, value)
    return f"{_title(key)} {text}" if text else ""


def _title(key: str) -> str:
    return (COLUMNS[key].title if key in COLUMNS else "") or axis_title(key)


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key in COLUMNS and COLUMNS[key].title:
        return COLUMNS[key].text(value)
    if key == "status":
        return STATUS_WORDS.get(value, str(value))
    return axis_text(key, value) if key == "causal" else value_text(key, value)


def _blocks(rows: Sequence[Row], meta: Meta) -> Iterator[Block]:
    known = rows[:MOST_ROWS]
    same, columns, lines = readable(known)
    if same:
        yield note(f"Equal in all rows: {', '.join(same)}.")
    if any(row.get("papers_flops_per_s") is not None for row in known):
        yield note(
            "Rates of backward passes: achieved counts their 4 products; papers count the scores"
            " made again too, 5."
        )
    cases = [case_key(row) for row in known]
    failed = columns.index("status")
    yield Table(
        title="All cases",
        columns=columns,
        rows=tuple(
            (
                Marked(cell=first, case=case),
                *(
                    Marked(cell=cell, failed=place == failed and row["status"] != "ok")
                    for place, cell in enumerate(rest, start=1)
                ),
            )
            for row, case, (first, *rest) in zip(known, cases, lines, strict=True)
        ),
        tools=True,
    )
    retyped = ((row, with_case(meta[row["run"]].get("command"), row["case"])) for row in known)
    if again := [(row, command) for row, command in retyped if command]:
        yield table_of(
            "Command to measure each case again, alone, under the same plan and limits",
            again,
            {
                "case": lambda of: str(of[0]["case"]),
                "run": lambda of: str(of[0]["run"]) if len(meta) > 1 else "",
                "command": lambda of: of[1],
            },
            case=lambda of: case_key(of[0]),
            optional=("run",),
            folded=True,
        )
    if len(rows) > MOST_ROWS:
        yield note(f"The first {MOST_ROWS} of {len(rows)} cases; show --format csv has them all.")
