"""A report as Markdown, for pull requests and job summaries: sentences and tables, no drawings.

The answer and the cards of each section are open; every other part is one folded line with its
finding.
"""

import re
from collections.abc import Iterator

from ..elements import Block, Card, Marked, Table, Text
from ..formatting import markdown_cell, markdown_grid
from .report import Part, Report, per_question

MOST_BYTES = 900_000  # GitHub drops a job summary of more than 1024 KiB
CLOSING_BYTES = 2_000  # of these, for the names of sections that are not there
MOST_ROWS = 200  # of one table
ON_PAGE = ("trust", "environment", "rows")  # for looking things up; the page has them


def render(report: Report) -> str:
    """Never longer than MOST_BYTES: parts that do not fit are left out and named."""
    parts = list(_head(report))
    size = sum(len(part.encode()) + 2 for part in parts)
    on_page, left_out = [], []
    for title, text in _sections(report):
        if not text:
            on_page.append(title)
        elif size + len(text.encode()) > MOST_BYTES - CLOSING_BYTES:
            left_out.append(title)
        else:
            size += len(text.encode()) + 2
            parts.append(text)
    if on_page:
        parts.append(f"On the page only: {', '.join(on_page)}.")
    if left_out:
        parts.append(f"Left out for lack of room: {', '.join(left_out)}; the page has them.")
    return _joined(parts) + "\n"


def _head(report: Report) -> Iterator[str]:
    yield f"# attnbench: {markdown_cell(report.heading)}"
    headers = (": ".join(filter(None, header)) for header in report.headers.values())
    yield "\\\n".join(map(markdown_cell, headers))
    yield from (f"**{markdown_cell(one)}**" for one in report.stopped)
    for one in per_question(report):
        yield from (f"_{markdown_cell(asked)}_" for asked in one.questions)
        yield from answer(one)


def answer(report: Report) -> Iterator[str]:
    """Of one question: the answer, how sure it is, and what another choice would have cost."""
    if report.answer:
        yield f"**{markdown_cell(report.answer)}**"
    if report.certainty:
        yield f"How sure: {markdown_cell(report.certainty)}"
    if report.choices is not None:
        yield _table(report.choices, _title(report.choices.title))


def _sections(report: Report) -> Iterator[tuple[str, str]]:
    """Titles and texts: the cards of each section, then its parts, folded."""
    for section in report.sections:
        shown = [text for card in section.cards for text in _card(card, section.title) if text]
        shown += [f"- {markdown_cell(line)}" for line in section.lines]
        if section.choices is not None:
            shown.append(_table(section.choices, _title(section.choices.title)))
        shown += [f"- {one.label}: {markdown_cell(one.text)}" for one in section.trust]
        if shown:
            yield section.title, _joined([f"## {markdown_cell(section.title)}", *shown])
        for part in section.parts:
            yield part.title, "" if part.name in ON_PAGE else _part(part)


def _card(card: Card, section: str) -> Iterator[str]:
    """The sentence, and the table of its picture. `section`: the title that stands above."""
    title = f"**{markdown_cell(card.title)}**" if card.title != section else ""
    yield ": ".join(filter(None, (title, markdown_cell(card.sentence))))
    if card.sure:
        yield f"How sure: {markdown_cell(card.sure)}"
    if card.decisions is not None:
        yield _table(card.decisions.table)
    picture = card.picture
    if isinstance(picture, Table) and picture != card.decisions:
        yield _table(picture, _title(card.subtitle))
    elif picture is not None and picture.table != card.decisions:
        title = markdown_cell(card.subtitle or picture.table.title)
        yield f"<details><summary>{title}</summary>\n\n{_table(picture.table)}\n\n</details>"


def _title(text: str) -> str:
    return f"{markdown_cell(text)}\n\n" if text else ""


def _part(part: Part) -> str:
    """A folded section, or a line for each sentence where it has nothing else; "" if it has notes
    and folded tables alone.
    """
    blocks = [block for block in part.blocks if not (isinstance(block, Table) and block.folded)]
    title = markdown_cell(part.title)
    if all(isinstance(block, Text) for block in blocks):
        said = [
            one for one in blocks if isinstance(one, Text) and one.kind in ("finding", "caution")
        ]
        return "\n".join(f"- {title}: {markdown_cell(one.text)}" for one in said)
    folded = _joined([text for block in blocks for text in _block(block)])
    return f"<details><summary>{title}</summary>\n\n{folded}\n\n</details>"


def _joined(texts: list[str]) -> str:
    """Paragraphs; sentences of one list follow each other without an empty line."""
    return re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(texts))


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        text = markdown_cell(block.text)
        looks = {"note": f"_{text}_", "caution": f"- Caution: {text}"}
        lines = "<br>\n".join(map(markdown_cell, block.text.splitlines()))
        yield lines if block.kind == "log" else looks.get(block.kind, f"- {text}")
        return
    if not isinstance(block, Table):
        yield f"**{markdown_cell(block.title)}**"
        yield markdown_cell(block.caption)
    yield _table(block.table, _title(block.table.title))


def _table(table: Table, title: str = "") -> str:
    rows = [list(map(_cell, row)) for row in table.cells[:MOST_ROWS]]
    columns = list(map(markdown_cell, table.columns))
    text = markdown_grid(columns, rows, right=table.numbers)
    more = f"\n\n{len(table.rows) - MOST_ROWS} more rows." if len(table.rows) > MOST_ROWS else ""
    return f"{title}{text}{more}"


def _cell(cell: Marked) -> str:
    text = markdown_cell(cell.text)
    return f"**{text or ' '}**" if cell.strong else text
