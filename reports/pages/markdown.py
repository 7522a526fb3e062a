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
ON_PAGE = ("trust", "method", "environment", "rows")  # for looking things up; the page has them


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
            with_numbers = part.name not in {card.name for card in section.cards}
            text = "" if part.name in ON_PAGE else _section(part, with_numbers=with_numbers)
            yield part.title, text


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


def _section(part: Part, *, with_numbers: bool) -> str:
    """A folded section, or its findings alone where it has no other numbers.

    Empty if it has nothing but notes and folded tables. `with_numbers`: with those of figures.
    """
    blocks = [block for block in part.blocks if not (isinstance(block, Table) and block.folded)]
    texts = [text for block in blocks for text in _block(block, with_numbers=with_numbers)]
    tables = [block for block in blocks if not isinstance(block, Text)]
    if not tables or not (with_numbers or any(isinstance(one, Table) for one in tables)):
        said = [text for block in blocks if (text := _finding(block) or _caution(block))]
        return "\n".join(f"- {markdown_cell(part.title)}: {markdown_cell(text)}" for text in said)
    found = [text for block in blocks if (text := _finding(block))][:1]
    line = ": ".join([part.title, *found])
    folded = _joined([text for text in texts if text != _line(found)])
    return f"<details><summary>{markdown_cell(line)}</summary>\n\n{folded}\n\n</details>"


def _joined(texts: list[str]) -> str:
    """Paragraphs; sentences of one list follow each other without an empty line."""
    return re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(texts))


def _line(findings: list[str]) -> str:
    """How the first finding stands among the texts, where it is a sentence."""
    return f"- {markdown_cell(findings[0])}" if findings else ""


def _finding(block: Block) -> str:
    if isinstance(block, Text):
        return block.text if block.kind == "finding" else ""
    return "" if isinstance(block, Table) else block.title


def _caution(block: Block) -> str:
    if isinstance(block, Text) and block.kind == "caution":
        return f"Caution: {block.text}"
    return ""


def _block(block: Block, *, with_numbers: bool) -> list[str]:
    if isinstance(block, Text):
        if block.kind == "log":
            return ["<br>\n".join(map(markdown_cell, block.text.splitlines()))]
        said = _finding(block) or _caution(block)
        return [f"- {markdown_cell(said)}" if said else f"_{markdown_cell(block.text)}_"]
    if isinstance(block, Table):
        return [_table(block, _title(block.title))]
    title = f"**{markdown_cell(block.title)}**"
    if not with_numbers:
        return [title]
    table = _table(block.table, _title(block.table.title))
    return [title, markdown_cell(block.caption), table]


def _table(table: Table, title: str = "") -> str:
    rows = [list(map(_cell, row)) for row in table.cells[:MOST_ROWS]]
    columns = list(map(markdown_cell, table.columns))
    text = markdown_grid(columns, rows, right=table.numbers)
    more = f"\n\n{len(table.rows) - MOST_ROWS} more rows." if len(table.rows) > MOST_ROWS else ""
    return f"{title}{text}{more}"


def _cell(cell: Marked) -> str:
    text = markdown_cell(cell.text)
    return f"**{text or ' '}**" if cell.strong else text
