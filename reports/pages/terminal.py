"""A report in the terminal: sentences as lines, tables by rich."""

from collections.abc import Iterable, Iterator
from typing import cast

from rich.console import RenderableType
from rich.markup import escape

from ...harness.fitted_table import FittedTable
from ..elements import Badges, Bars, Block, Figure, Maps, Table, Text
from ..formatting import visible
from ..sections import Section, name_of, sections, summary
from .report import Report

USUAL = ("summary",)
MOST_ROWS = 60
STATES = {"good": "[green]good[/]", "caution": "[yellow]caution[/]", "unknown": "[dim]unknown[/]"}


def section_names() -> list[str]:
    return [name_of(section) for section in sections()]


def render(report: Report, names: Iterable[str] = USUAL) -> Iterator[RenderableType]:
    """The named sections, in the page's order."""
    requested = set(names)
    for section in report.sections:
        if name_of(section) in requested:
            yield f"\n[bold]{escape(section.TITLE)}[/]"
            folded_rows = 0
            for block in report.blocks(section):
                if isinstance(block, Table) and block.folded:
                    folded_rows += len(block.rows)
                yield from render_block(block, fold=folded_rows > MOST_ROWS)


def terminal_summary(report: Report) -> list[str]:
    """The sentences of the page's summary, for the end of a run."""
    texts = (block for block in report.blocks(cast(Section, summary)) if isinstance(block, Text))
    return [text.text for text in texts if text.kind not in ("question", "note")]


def render_block(block: Block, *, fold: bool = False) -> Iterator[RenderableType]:
    """One block, as lines and tables; with `fold`, a folded table is only named."""
    if isinstance(block, Text):
        style = "dim" if block.kind == "note" else "bold" if block.kind == "question" else ""
        yield f"[{style}]{_safe(block.text)}[/]" if style else _safe(block.text)
    elif isinstance(block, Figure | Maps | Bars):
        yield _safe(block.title)
        yield from render_block(block.table)
    elif isinstance(block, Badges):
        for one in block.badges:
            yield f"{STATES[one.state]} {_safe(one.label)}: {_safe(one.text)}"
    elif isinstance(block, Table) and block.folded and fold:
        yield f"[dim]{_safe(block.title)}: {len(block.rows)} rows, in the report[/]"
    elif isinstance(block, Table):
        yield f"[italic]{_safe(block.title)}[/]"
        yield _grid(block)


def _safe(text: str) -> str:
    return escape(visible(text))


def _grid(table: Table) -> FittedTable:
    grid = FittedTable()
    for column in table.columns:
        grid.add_column(_safe(column))
    for place, row in enumerate(table.rows[:MOST_ROWS]):
        cells = map(_safe, row)
        grid.add_row(
            *(
                f"[bold]{cell}[/]" if (place, column) in table.strong else cell
                for column, cell in enumerate(cells)
            )
        )
    if len(table.rows) > MOST_ROWS:
        grid.add_row(f"{len(table.rows) - MOST_ROWS} more rows")
    return grid
