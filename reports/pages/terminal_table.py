"""A table that fits the width of a terminal: no cell is cut, and nothing is lost without a word.

Where there is little room, in this order: names get shorter, cells fold at words, columns that may
go are left out and named, and the widest of the others stand below their row.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from rich import get_console
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.text import Text

from ...harness.files.printable import visible
from .. import elements
from ..elements import Block, Marked, Table

GAP = "  "
MOST_LINES = 3  # of a folded cell; a longer one is read with more ease below its row
GLUE = "\ue000"  # of a private area of Unicode; no text has it


@dataclass(frozen=True, eq=False)
class Column:
    """A header, and a cell for each row."""

    header: Text
    cells: Sequence[Text]
    right: bool = False

    @cached_property
    def width(self) -> int:
        """With its header folded, and no cell."""
        lines = (line.cell_len for cell in self.cells for line in cell.split(allow_blank=True))
        return max([_longest_word([self.header]), *lines])

    @cached_property
    def least_width(self) -> int:
        return self.folded_width(MOST_LINES)

    def folded_width(self, most_lines: int) -> int:
        """Breaks no word, and folds no line of a cell into more."""
        least = _longest_word([self.header, *self.cells])
        tried = range(least, max(least, self.width))  # the wider, the fewer lines
        lines = [line for cell in self.cells for line in cell.split()]

        def fits(width: int) -> bool:
            return all(len(_wrapped(line, width)) <= most_lines for line in lines)

        return least + bisect_left(tried, True, key=fits)


class TerminalTable:
    """`rows`: cells in rich's markup. `right`: headers of right-aligned columns. `may_go`: those of
    columns that are left out first. `shorter`: other names of the rows, and the title then.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        title: str = "",
        right: Collection[str] = (),
        may_go: Sequence[str] = (),
        shorter: tuple[Sequence[str], str] = ((), ""),
    ) -> None:
        self.headers, self.right, self.title = columns, right, title
        self.cells = [*zip(*rows, strict=True)] or [()] * len(columns)
        self.may_go, self.shorter = may_go, shorter

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, title = options.max_width, self.title

        def text(cell: str) -> Text:
            return console.render_str(cell, highlight=False, emoji=False)

        every = [
            Column(
                console.render_str(name, style="bold", markup=False),
                [*map(text, cells)],
                name in self.right,
            )
            for name, cells in zip(self.headers, self.cells, strict=True)
        ]
        names, short_title = self.shorter
        if names and _total(max(one.width, one.header.cell_len) for one in every) > width:
            every[0], title = Column(every[0].header, [*map(Text, names)]), short_title
        if title:
            yield from _wrapped(Text(title, "italic"), width)
        beside, may_go, left_out = list(every), list(self.may_go), []
        while len(beside) > 1 and _total(one.least_width for one in beside) > width:
            if may_go:
                left_out += [one for one in beside if one.header.plain == may_go[0]]
                name = may_go.pop(0)
                beside = [one for one in beside if one.header.plain != name]
            else:
                most = max(one.least_width for one in beside[1:])
                beside[1:] = [one for one in beside[1:] if 2 * one.least_width <= most]
        below = [one for one in every if one not in beside and one not in left_out]
        yield from _grid(beside, _widths(beside, width), below, width)
        if left_out:
            names = ", ".join(one.header.plain for one in every if one in left_out)
            yield from _wrapped(Text(f"left out at {width} columns: {names}", "dim"), width)


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """In as few lines as possible; what is left helps cells first, then headers."""
    for lines in range(1, MOST_LINES + 1):
        widths = [min(one.folded_width(lines), width) for one in columns]
        if _total(widths) <= width:
            break
    for wanted in ([one.width for one in columns], [one.header.cell_len for one in columns]):
        for place, most in enumerate(wanted):
            room = width - _total(widths)
            widths[place] += max(0, min(room, most - widths[place]))
    return widths


def _grid(
    columns: Sequence[Column], widths: Sequence[int], below: Sequence[Column], width: int
) -> Iterator[Text]:
    """Rows of cells side by side. `below`: what stands under its row, with its header."""
    if any(one.header.plain for one in columns):
        yield from _row([one.header for one in columns], columns, widths)
    for number in range(len(columns[0].cells)):
        yield from _row([one.cells[number] for one in columns], columns, widths)
        named = (
            (f"{one.header.plain}: " if one.header.plain else "", one.cells[number])
            for one in below
        )
        under = [Text(name) + cell for name, cell in named if cell.plain.strip()]
        if all(one.cell_len <= width - len(GAP) for one in under):
            under = [Text(GAP).join(under)] if under else []
        for text in under:
            yield from (Text(GAP) + line for line in _wrapped(text, width - len(GAP)))


def _row(cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int]) -> Iterator[Text]:
    folded = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, folded))):
        line = Text()
        for lines, column, width in zip(folded, columns, widths, strict=True):
            cell = lines[number] if number < len(lines) else Text()
            cell.align("right" if column.right else "left", width)
            line = (line + GAP if column is not columns[0] else line) + cell
        line.rstrip()
        yield line


def _wrapped(text: Text, width: int) -> list[Text]:
    """At words; a word longer than the width is the only thing that is ever cut."""
    lines = list(_glued(text).wrap(get_console(), max(1, width), no_wrap=False, overflow="fold"))
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(GLUE, " ")
        line.no_wrap = True
    return lines or [Text()]


def _longest_word(texts: Iterable[Text]) -> int:
    words = (Text(word).cell_len for text in texts for word in _glued(text).plain.split())
    return max(words, default=1)


def _glued(text: Text) -> Text:
    """A number and its unit are one word: what ends in a digit stays with what is a word."""
    words = text.plain.split(" ")
    glues = (
        "=" in (a, b) or (a[-1:].isdigit() and (b[:1].isalpha() or b[:1] == "%"))
        for a, b in pairwise(words)
    )
    glued = text.copy()
    glued.plain = words[0] + "".join(
        (GLUE if glue else " ") + word for glue, word in zip(glues, words[1:], strict=True)
    )
    return glued


# ---- blocks --------------------------------------------------------------------------------------


MOST_ROWS = 60
LOOKS = {"good": "green", "bad": "red", "mixed": "yellow", "open": "dim"}  # of verdicts


def render_block(block: Block, elsewhere: str = "") -> Iterator[RenderableType]:
    """One block, as lines and tables. `elsewhere`: where its table is, which is only named."""
    if isinstance(block, elements.Text):
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
