"""Runs as rows, blocks of a section, pages and texts, in one call each."""

import re
from pathlib import Path
from typing import Any

from attnbench.harness.files.safe_files import write_whole
from attnbench.reports.data import load
from attnbench.reports.data.row_groups import Row
from attnbench.reports.data.run_meta import Meta, read_run, run_meta
from attnbench.reports.elements import Block, Card, Figure, Table, Text
from attnbench.reports.pages import html, markdown
from attnbench.reports.pages.report import open_report, page_path
from attnbench.reports.subjects import Subject, tell
from tests.made_runs import row, write_run

NO_VALUE = r"\b(nan|None|inf|NaN|<NA>)\b"


def rows_of(*runs: Path) -> list[Row]:
    return load.rows_of([read_run(run) for run in runs])


def rows_with_statuses(parent: Path, *cases: tuple[dict[str, Any], str]) -> list[Row]:
    """Of one run with these planned cases and the status of each."""
    rows = [row(planned, status) for planned, status in cases]
    return rows_of(write_run(parent, [planned for planned, _ in cases], rows))


def blocks_of(one: Any, *runs: Path) -> list[Block]:
    """Of a subject, with what its card says."""
    return list(subject_of(one, *runs).details(alone=True))


def rows_and_meta(*runs: Path) -> tuple[list[Row], Meta]:
    read = [read_run(run) for run in runs]
    return load.rows_of(read), run_meta(read)


def subject_of(one: Any, *runs: Path) -> Subject:
    return tell(one, *rows_and_meta(*runs))


def card_of(one: Any, *runs: Path) -> Card:
    card = subject_of(one, *runs).card
    assert card is not None
    return card


def one_of(rows: list[Row], **wanted: Any) -> Row:
    """The only row with these values."""
    (found,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return found


def sentences(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Text)]


def tables_of(blocks: list[Block]) -> list[Table]:
    """Without the tables of figures."""
    return [block for block in blocks if isinstance(block, Table)]


def figures_of(blocks: list[Block]) -> list[Figure]:
    return [block for block in blocks if isinstance(block, Figure)]


def page_of(*runs: Path) -> str:
    return html.render(open_report(runs))


def write_page(*runs: Path, out: Path | None = None) -> Path:
    """As `attnbench report` writes it."""
    target = out or page_path(runs)
    write_whole(target, page_of(*runs))
    return target


def markdown_of(*runs: Path) -> str:
    return markdown.render(open_report(runs))


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def text_of(page: str) -> str:
    """The text of a page or of a part of it, on one line."""
    body = without_scripts(page[page.find("<body") + 1 :])
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body)).replace("\xa0", " ")


def openers(page: str) -> int:
    """How many scripts of a page do nothing but open a noscript."""
    return page.count(f"<script>{html.LATER}</script>")
