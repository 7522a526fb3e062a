"""A report as Markdown, for pull requests and job summaries: sentences and tables, no drawings."""

from collections.abc import Iterable, Iterator

from ..elements import Badges, Bars, Block, Figure, Maps, Table, Text
from ..formatting import markdown_cell, markdown_grid
from ..sections import name_of
from .report import Report

MOST_BYTES = 900_000  # GitHub drops a job summary of more than 1024 KiB
MOST_ROWS = 200  # of one table
ALWAYS_OPEN = ("summary",)


def render(report: Report) -> str:
    """Never longer than MOST_BYTES: sections that do not fit are left out and named."""
    parts = ["# attnbench: " + ", ".join(map(markdown_cell, report.meta))]
    left_out = []
    size = len(parts[0].encode())
    for section in report.sections:
        is_open = name_of(section) in ALWAYS_OPEN
        text = "\n\n".join(_section(section.TITLE, report.blocks(section), is_open=is_open))
        if size + len(text.encode()) > MOST_BYTES:
            left_out.append(section.TITLE)
            continue
        size += len(text.encode()) + 2
        parts.append(text)
    if left_out:
        parts.append(f"Left out for lack of room: {', '.join(left_out)}; the page has them.")
    return "\n\n".join(parts) + "\n"


def _section(title: str, blocks: Iterable[Block], *, is_open: bool) -> Iterator[str]:
    yield f"## {title}"
    for block in blocks:
        if isinstance(block, Text):
            text = markdown_cell(block.text)
            yield f"- {text}" if block.kind == "finding" else f"_{text}_"
        elif isinstance(block, Figure | Maps | Bars):
            yield f"**{markdown_cell(block.title)}**"
            yield markdown_cell(block.caption)
            yield _table(block.table, is_open=False)
        elif isinstance(block, Badges):
            yield "\n".join(
                f"- {markdown_cell(one.label)}, {one.state}: {markdown_cell(one.text)}"
                for one in block.badges
            )
        elif isinstance(block, Table):
            yield _table(block, is_open=is_open and not block.folded)


def _table(table: Table, *, is_open: bool) -> str:
    rows = [[markdown_cell(cell) for cell in row] for row in table.rows[:MOST_ROWS]]
    for row, column in table.strong:
        if row < len(rows):
            rows[row][column] = f"**{rows[row][column] or ' '}**"
    text = markdown_grid(list(map(markdown_cell, table.columns)), rows)
    more = f"\n\n{len(table.rows) - MOST_ROWS} more rows." if len(table.rows) > MOST_ROWS else ""
    title = markdown_cell(table.title)
    if is_open:
        return f"{title}\n\n{text}{more}"
    return f"<details><summary>{title}</summary>\n\n{text}{more}\n\n</details>"
