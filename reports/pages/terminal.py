"""A run's sections in the terminal: sentences as lines, tables by rich; plain where nothing reads
colours.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table as Grid

from ..data.load import frame, read_run, told
from .exactness_marks import marked, marked_names
from ..elements import Badges, Bars, Block, Figure, Maps, Table, Text
from ..formatting import visible
from ..sections import sections
from ..sections import shown as sections_of

USUAL = ("summary", "environments", "heads", "memory", "utilization", "refusals")
MOST_ROWS = 60
MARKS = {"good": "[green]good[/]", "caution": "[yellow]caution[/]", "unknown": "[dim]unknown[/]"}


def names() -> list[str]:
    return [section.__name__.rpartition(".")[2] for section in sections()]


def shown(
    run_paths: Sequence[str | Path], wanted: Iterable[str] = USUAL
) -> Iterator[RenderableType]:
    """What to print of the named sections, in the page's order. Raises BadRun."""
    asked = set(wanted)
    runs = [read_run(path) for path in run_paths]
    table, meta = frame(runs), told(runs)
    shown_names = marked_names(table, meta)
    for section in sections_of(meta):
        if section.__name__.rpartition(".")[2] in asked and all(
            column in table.columns for column in section.NEEDS
        ):
            yield f"\n[bold]{escape(section.TITLE)}[/]"
            for block in marked(section.render(table, meta), shown_names):
                yield from rendered(block)


def rendered(block: Block) -> Iterator[RenderableType]:
    """One block, as lines and tables."""
    if isinstance(block, Text):
        style = "dim" if block.kind == "note" else "bold" if block.kind == "question" else ""
        text = escape(visible(block.text))
        yield f"[{style}]{text}[/]" if style else text
    elif isinstance(block, Figure | Maps | Bars):
        yield escape(visible(block.title))
        yield from rendered(block.table)
    elif isinstance(block, Badges):
        yield from (
            f"{MARKS[one.state]} {escape(visible(one.label))}: {escape(visible(one.text))}"
            for one in block.badges
        )
    elif isinstance(block, Table) and block.folded and len(block.rows) > MOST_ROWS:
        yield f"[dim]{escape(visible(block.title))}: {len(block.rows)} rows, in the report[/]"
    elif isinstance(block, Table):
        yield f"[italic]{escape(visible(block.title))}[/]"
        yield _grid(block)


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        grid.add_column(escape(visible(column)))
    for place, row in enumerate(table.rows[:MOST_ROWS]):
        cells = [escape(visible(cell)) for cell in row]
        grid.add_row(
            *(
                f"[bold]{cell}[/]" if (place, column) in table.strong else cell
                for column, cell in enumerate(cells)
            )
        )
    if len(table.rows) > MOST_ROWS:
        grid.add_row(f"{len(table.rows) - MOST_ROWS} more rows")
    return grid
