"""Blocks in a terminal: sentences as lines, figures as their tables.

What prints a few tables imports this file, which needs no section and no package for data.
"""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.markup import escape

from ...harness.files.printable import visible
from ..elements import Block, Marked, Table, Text
from .terminal_table import TerminalTable

MOST_ROWS = 60
LOOKS = {"good": "green", "bad": "red", "mixed": "yellow", "open": "dim"}  # of verdicts


def render_block(block: Block, elsewhere: str = "") -> Iterator[RenderableType]:
    """One block, as lines and tables. `elsewhere`: where its table is, which is only named."""
    if isinstance(block, Text):
        style = {"note": "dim", "caution": "yellow"}.get(block.kind, "")
        text = escape(visible(block.text, lines=block.kind == "log"))
        yield f"[{style}]{text}[/]" if style else text
    elif elsewhere:
        yield f"[dim]{safe(block.title)}: {len(block.table.rows)} rows, {elsewhere}[/]"
    else:
        if block.table is not block:
            yield safe(block.title)
        if block.table.title:
            yield f"[italic]{safe(block.table.title)}[/]"
        yield grid(block.table)


def safe(text: str) -> str:
    return escape(visible(text))


def grid(table: Table) -> TerminalTable:
    table = table.upright
    numbers = table.numbers
    rows = [list(map(_cell, row)) for row in table.cells[:MOST_ROWS]]
    if len(table.rows) > MOST_ROWS:
        more = f"{len(table.rows) - MOST_ROWS} more rows"
        rows.append([more, *[""] * (len(table.columns) - 1)])
    columns = [*map(visible, table.columns)]
    return TerminalTable(columns, rows, right={columns[place] for place in numbers})


def _cell(cell: Marked) -> str:
    look = "bold" if cell.strong else LOOKS.get(cell.verdict or "", "")
    return f"[{look}]{safe(cell.text)}[/]" if look else safe(cell.text)
