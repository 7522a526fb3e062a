"""The tables of docs/format.md, from the descriptions of fields; tests/harness/rows/test_tables.py
writes them into the page and compares.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from .fields import PARTS
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
            kind = f"{column.kind}?" if column.nullable else column.kind
            found.append((waiting, kind, " ".join(text.split())))
            waiting = []
    return found


def table(model: type[BaseModel]) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for names, kind, text in lines(model):
        rows.append(f"| {' '.join(f'`{name}`' for name in names)} | {kind} | {text} |")
    return "\n".join(rows) + "\n"


def of_kind(kind: str) -> str:
    """The table of a kind of rows: of a case all fields, of another what it alone has."""
    return table(KINDS[kind] if kind == "latency" else PARTS[kind][-1])


def of_texts(texts: Mapping[str, str]) -> str:
    """The table of what is said of each name."""
    rows = [f"| `{name}` | {text} |" for name, text in texts.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows]) + "\n"
