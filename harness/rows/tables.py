"""Prints the tables of docs/format.md from the files of fields; a test compares them."""

from .fields import ShapeOfWall
from .kinds import PARTS
from .model import FIELDS, KINDS, Column
from .values import Part

SHARED = "as in a row of a case"
Line = tuple[list[Column], str]


def lines(kind: str) -> list[Line]:
    """Columns that share a line, and their text."""
    found: list[Line] = []
    waiting: list[Column] = []
    last_part = None
    for name, field in KINDS[kind].model_fields.items():
        column = FIELDS[kind][field.alias or name]
        part = _part_of(kind, name)
        if kind != "latency" and part in (*PARTS["latency"], ShapeOfWall):
            if last_part is part:
                found[-1][0].append(column)
            else:
                found.append(([column], SHARED))
        else:
            waiting.append(column)
            if text := part.model_fields[name].description:
                found.append((waiting, " ".join(text.split())))
                waiting = []
        last_part = part
    return found


def _part_of(kind: str, name: str) -> type[Part]:
    """The part that says what the field is."""
    return [part for part in PARTS[kind] if name in part.model_fields][-1]


def markdown(kind: str) -> str:
    """The table of a kind."""
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for columns, text in lines(kind):
        names = " ".join(f"`{one.name}`" for one in columns)
        types = {f"{one.kind} or null" if one.nullable else one.kind for one in columns}
        kind_text = "" if text == SHARED else types.pop()
        rows.append(f"| {names} | {kind_text} | {text} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print("\n".join(map(markdown, KINDS)))  # noqa: T201 - the tables
