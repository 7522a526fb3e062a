"""Prints the tables of docs/format.md from the files of fields; a test compares them."""

import ast
from functools import cache
from pathlib import Path

from .fields import ShapeOfWall
from .model import FIELDS, KINDS, PARTS, Column
from .values import Part

SHARED = "as in a row of a case"
FILES = ("fields.py", "kernel_fields.py")
Line = tuple[list[Column], str]


@cache
def _texts() -> dict[str, dict[str, str]]:
    """What stands below each field in its file, by class and field."""
    found: dict[str, dict[str, str]] = {}
    files = (Path(__file__).with_name(name) for name in FILES)
    for node in (one for file in files for one in ast.parse(file.read_text()).body):
        if isinstance(node, ast.ClassDef):
            texts = found[node.name] = {}
            name = ""
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    name = one.target.id
                elif name and isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                    texts[name] = " ".join(str(one.value.value).split())
    return found


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
            if text := _texts().get(part.__name__, {}).get(name) or field.description:
                found.append((waiting, text))
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
