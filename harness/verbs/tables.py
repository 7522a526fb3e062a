"""What verbs print: blocks, and tables of plain texts."""

from collections.abc import Iterable, Sequence

from rich.markup import escape

from ...reports.elements import Block, Table
from ...reports.pages.terminal_table import TerminalTable, render_block
from ..cases.case import ShortNames
from ..files.printable import visible
from ..terminal.progress import echo


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Sequence[str] = (),
    may_go: Sequence[str] = (),
    *,
    ids: bool = False,
) -> TerminalTable:
    """Cells are text, never markup. `right`: right-aligned columns. `may_go`: the columns that go
    first if there is little room. `ids`: the first column has ids of cases, which may be shortened.
    """
    rows = list(rows)
    names = ShortNames(row[0] for row in rows) if ids else None
    common = f"all with {' '.join(names.common)}" if names and names.common else ""
    return TerminalTable(
        columns,
        [[escape(visible(cell)) for cell in row] for row in rows],
        title=title,
        right=right,
        may_go=may_go,
        shorter=(
            [names.of(row[0]) for row in rows] if names else (),
            "; ".join(part for part in (title, common) if part),
        ),
    )


def show(blocks: Iterable[Block]) -> None:
    """Print them, with an empty line between a table and what follows."""
    after_table = False
    for block in blocks:
        if after_table:
            echo("")
        for part in render_block(block):
            echo(part)
        after_table = isinstance(block, Table)
