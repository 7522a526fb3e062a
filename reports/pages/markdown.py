"""A run as Markdown, for pull requests and job summaries: the same sentences and tables as the
page, without its figures' drawings.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..data.load import frame, read_run, told
from .exactness_marks import marked, marked_names
from ..elements import Badges, Bars, Block, Figure, Maps, Table, Text
from ..formatting import markdown_cell
from ..sections import shown

MOST_BYTES = 900_000
"""A GitHub job summary of more than 1024 KiB is dropped whole."""
MOST_ROWS = 200
"""Of one table; a person reads no further."""
ALWAYS_OPEN = ("summary",)


def markdown(run_paths: Sequence[str | Path]) -> str:
    """Raises BadRun. Never longer than MOST_BYTES: later sections are left out first, and it says
    which.
    """
    runs = [read_run(path) for path in run_paths]
    table, meta = frame(runs), told(runs)
    names = marked_names(table, meta)
    parts = ["# attnbench: " + ", ".join(markdown_cell(name) for name in meta)]
    left_out = []
    size = len(parts[0].encode())
    for section in shown(meta):
        if any(column not in table.columns for column in section.NEEDS):
            continue
        name = section.__name__.rpartition(".")[2]
        text = "\n\n".join(
            _section(
                section.TITLE,
                marked(section.render(table, meta), names),
                is_open=name in ALWAYS_OPEN,
            )
        )
        if size + len(text.encode()) > MOST_BYTES:
            left_out.append(section.TITLE)
            continue
        size += len(text.encode()) + 2
        parts.append(text)
    if left_out:
        parts.append(f"Left out for want of room: {', '.join(left_out)}; the page has them.")
    return "\n\n".join(parts) + "\n"


def _section(title: str, blocks: Iterator[Block], *, is_open: bool) -> Iterator[str]:
    yield f"## {title}"
    for block in blocks:
        if isinstance(block, Text):
            yield (
                f"- {markdown_cell(block.text)}"
                if block.kind == "finding"
                else f"_{markdown_cell(block.text)}_"
            )
        elif isinstance(block, Figure | Maps | Bars):
            yield f"**{markdown_cell(block.title)}**"
            yield markdown_cell(block.caption)
            yield from _table(block.table, is_open=False)
        elif isinstance(block, Badges):
            yield "\n".join(
                f"- {markdown_cell(one.label)}, {one.state}: {markdown_cell(one.text)}"
                for one in block.badges
            )
        elif isinstance(block, Table):
            yield from _table(block, is_open=is_open and not block.folded)


def _table(table: Table, *, is_open: bool) -> Iterator[str]:
    rows = [[markdown_cell(cell) or " " for cell in row] for row in table.rows[:MOST_ROWS]]
    for row, column in table.strong:
        if row < len(rows):
            rows[row][column] = f"**{rows[row][column]}**"
    lines = [
        [markdown_cell(column) or " " for column in table.columns],
        ["---"] * len(table.columns),
        *rows,
    ]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    more = f"\n\n{len(table.rows) - MOST_ROWS} more rows." if len(table.rows) > MOST_ROWS else ""
    if is_open:
        yield f"{markdown_cell(table.title)}\n\n{text}{more}"
    else:
        yield f"<details><summary>{markdown_cell(table.title)}</summary>\n\n{text}{more}\n\n</details>"
