"""A report as Markdown, for pull requests and job summaries: sentences and tables, no drawings.

The answers and the summary are open; every other section is one folded line with its finding.
"""

from collections.abc import Iterable, Iterator

from ..data.row_groups import records
from ..elements import Bars, Block, Card, Figure, Maps, Table, Text
from ..formatting import markdown_cell, markdown_grid
from .alignment import number_columns
from .report import Part, Report
from .run_titles import page_title, questions, subtitle

MOST_BYTES = 900_000  # GitHub drops a job summary of more than 1024 KiB
MOST_ROWS = 200  # of one table
OPEN = "summary"
ON_PAGE = ("method", "environment", "rows")  # for looking things up; the page has them


def render(report: Report) -> str:
    """Never longer than MOST_BYTES: sections that do not fit are left out and named."""
    parts = list(_head(report))
    if report.cards:
        parts += ["## Answers", *(text for card in report.cards for text in _card(card))]
    size = sum(len(part.encode()) + 2 for part in parts)
    left_out = []
    on_page = [part.title for part in report.answered if part.name in ON_PAGE]
    for part in report.answered:
        if part.name in ON_PAGE:
            continue
        text = "\n\n".join(_open(part) if part.name == OPEN else _folded(part))
        if size + len(text.encode()) > MOST_BYTES:
            left_out.append(part.title)
            continue
        size += len(text.encode()) + 2
        parts.append(text)
    if report.lacking:
        parts.append(f"Not in {_these(report)}: {', '.join(one.title for one in report.lacking)}.")
    if on_page:
        parts.append(f"On the page only: {', '.join(on_page)}.")
    if left_out:
        parts.append(f"Left out for lack of room: {', '.join(left_out)}; the page has them.")
    return "\n\n".join(parts) + "\n"


def _these(report: Report) -> str:
    return "these runs" if len(report.meta) > 1 else "this run"


def _head(report: Report) -> Iterator[str]:
    yield f"# attnbench: {markdown_cell(page_title(report.meta))}"
    rows = records(report.frame)
    lines = []
    for name, run in report.meta.items():
        about = subtitle(run, [row for row in rows if row["run"] == name])
        title = f"{report.titles[name]}: " if len(report.meta) > 1 else ""
        lines.append(markdown_cell(title + about))
    yield "\\\n".join(lines)
    yield from (f"_{markdown_cell(question)}_" for question in questions(report.meta))
    if report.badges:
        checks = "\n".join(
            f"- {one.state}: {markdown_cell(one.label)}. {markdown_cell(one.text)}"
            for one in report.badges
        )
        yield f"<details><summary>Trust: {report.trust}</summary>\n\n{checks}\n\n</details>"


def _card(card: Card) -> Iterator[str]:
    """The sentence, and the table of its picture."""
    yield f"**{markdown_cell(card.title)}**: {markdown_cell(card.sentence)}"
    picture = card.picture
    if isinstance(picture, Table):
        yield _table(picture, _title(card.subtitle))
    elif picture is not None:
        title = markdown_cell(card.subtitle or picture.table.title)
        yield f"<details><summary>{title}</summary>\n\n{_table(picture.table)}\n\n</details>"


def _title(text: str) -> str:
    return f"{markdown_cell(text)}\n\n" if text else ""


def _open(part: Part) -> Iterator[str]:
    yield f"## {markdown_cell(part.title)}"
    for block in part.blocks:
        if isinstance(block, Table) and block.folded:
            title = markdown_cell(block.title)
            yield f"<details><summary>{title}</summary>\n\n{_table(block)}\n\n</details>"
        else:
            yield from _block(block)


def _folded(part: Part) -> Iterator[str]:
    """The section as one line that opens, with its first finding."""
    found = next((text for block in part.blocks if (text := _finding(block))), "")
    line = f"{part.title}: {found}" if found else part.title
    yield f"<details><summary>{markdown_cell(line)}</summary>"
    first = True
    for block in part.blocks:
        # the finding that stands in the line is not repeated
        if first and _finding(block) == found and found:
            first = False
            if isinstance(block, Text):
                continue
            yield from _numbers(block)
            continue
        yield from _block(block)
    yield "</details>"


def _finding(block: Block) -> str:
    if isinstance(block, Text):
        return block.text if block.kind == "finding" else ""
    return "" if isinstance(block, Table) else block.title


def _block(block: Block) -> Iterable[str]:
    if isinstance(block, Text):
        text = markdown_cell(block.text)
        return [
            {"finding": f"- {text}", "caution": f"- Caution: {text}"}.get(block.kind, f"_{text}_")
        ]
    if isinstance(block, Figure | Maps | Bars):
        return [f"**{markdown_cell(block.title)}**", *_numbers(block)]
    return _numbers(block)


def _numbers(block: Figure | Maps | Bars | Table) -> Iterable[str]:
    table = block if isinstance(block, Table) else block.table
    about = [] if isinstance(block, Table) else [markdown_cell(block.caption)]
    return [*about, _table(table, _title(table.title))]


def _table(table: Table, title: str = "") -> str:
    rows = [[markdown_cell(cell) for cell in row] for row in table.rows[:MOST_ROWS]]
    for row, column in table.strong:
        if row < len(rows):
            rows[row][column] = f"**{rows[row][column] or ' '}**"
    columns = list(map(markdown_cell, table.columns))
    text = markdown_grid(columns, rows, right=number_columns(table))
    more = f"\n\n{len(table.rows) - MOST_ROWS} more rows." if len(table.rows) > MOST_ROWS else ""
    return f"{title}{text}{more}"
