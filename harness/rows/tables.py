"""The tables of docs/format.md, from the descriptions of fields; tests/harness/rows/test_tables.py
writes them into the page and compares.
"""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from .fields import PARTS, ShapeOfWall
from .model import KINDS, columns_of

Line = tuple[list[str], str, str]
"""Fields of one type that share a text."""


def lines(model: type[BaseModel]) -> list[Line]:
    """The model's fields; one without a text shares the line of the next one that has a text."""
    found: list[Line] = []
    waiting: list[str] = []
    for column, field in zip(columns_of(model), model.model_fields.values(), strict=True):
        waiting.append(column.name)
        if text := field.description:
            kind = f"{column.kind} or null" if column.nullable else column.kind
            found.append((waiting, kind, " ".join(text.split())))
            waiting = []
    return found


def table(model: type[BaseModel], *, without: tuple[str, ...] = ()) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for names, kind, text in lines(model):
        if not set(names) <= set(without):
            rows.append(f"| {_code(names)} | {kind} | {text} |")
    return "\n".join(rows) + "\n"


def of_kind(kind: str) -> str:
    """The table of a kind of rows, after a sentence on what all kinds share."""
    if kind == "latency":
        return table(KINDS[kind])
    own = PARTS[kind][-1].model_fields
    names = [one.name for one in columns_of(KINDS[kind])]
    shared = tuple(name for name in names if name not in own)
    axes = set(ShapeOfWall.model_fields)
    said = _code(name for name in shared if name not in axes)
    problem = ", and the fields of the problem but `seq_len`" if axes & set(shared) else ""
    return f"As in a row of a case: {said}{problem}.\n\n{table(KINDS[kind], without=shared)}"


def of_texts(texts: Mapping[str, str]) -> str:
    """The table of what is said of each name."""
    rows = [f"| `{name}` | {text} |" for name, text in texts.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows]) + "\n"


def _code(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)
