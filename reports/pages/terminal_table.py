"""A table that fits the width of a terminal: no cell is cut, and nothing is lost without a word.

Where there is little room, in this order: names get shorter, cells fold at words, long texts stand
below their row, columns that may go are left out and named, and each row gets lines of its own.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich import get_console
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

GAP = "  "
PROSE_FROM = 12  # columns: a cell with spaces that is longer may be folded
MOST_LINES = 3  # of a cell; a longer one is read with more ease below its row
ROOM_LEAST = 8  # columns, beside a row, for texts that are short
FEWEST_COLUMNS = 3  # with fewer a table compares nothing: each row gets lines of its own
GLUE = "\ue000"  # of a private area of Unicode; no text has it
UNIT = re.compile(
    r"(?<=\d) (?=(?:[KMGT]i?B?|[nuµμm]?s|B|%|min|h|times|[KMGTP]?FLOP\S*)\b)|(?<= =) | (?== )"
)  # what stands between a number and its unit, and in N = 2k


@dataclass(frozen=True, eq=False)
class Column:
    """A header, and a cell for each row."""

    header: Text
    cells: Sequence[Text]
    right: bool = False

    @cached_property
    def lines(self) -> list[Text]:
        return [line for cell in self.cells for line in cell.split(allow_blank=True)]

    @cached_property
    def is_prose(self) -> bool:
        """Its cells may be folded."""
        long = any(one.cell_len > PROSE_FROM and " " in one.plain for one in self.lines)
        return long or any("\n" in one.plain for one in self.cells)

    @cached_property
    def width(self) -> int:
        """With its header folded, and no cell."""
        words = [len(word) for word in self.header.plain.split()]
        return max([*words, *(line.cell_len for line in self.lines)], default=0)

    @property
    def full_width(self) -> int:
        return max(self.width, self.header.cell_len)

    def least_width(self, lines: int) -> int:
        """Breaks no word, and folds no cell into more lines."""
        texts = [self.header, *self.cells]
        words = (Text(word).cell_len for one in texts for word in _glued(one).plain.split())
        least = max(words, default=1)
        tried = range(least, max(least, self.width))  # the wider, the fewer lines

        def fits(width: int) -> bool:
            return all(len(_wrapped(cell, width)) <= lines for cell in self.cells)

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

        def text(cell: str) -> Text:  # the console knows of spaces at which no line may end
            return console.render_str(cell, highlight=False, emoji=False)

        columns = [
            Column(
                console.render_str(name, style="bold", markup=False),
                [*map(text, some)],
                name in self.right,
            )
            for name, some in zip(self.headers, self.cells, strict=True)
        ]
        names, short_title = self.shorter
        if names and _total(one.full_width for one in columns) > width:
            first = Column(columns[0].header, [*map(Text, names)])
            columns, title = [first, *columns[1:]], short_title
        if title:
            yield from _wrapped(Text(title, "italic"), width)
        yield from self._fitted(columns, width)

    def _fitted(self, columns: list[Column], width: int) -> Iterator[Text]:
        if widths := _widths(columns, width):
            yield from _grid(columns, widths, (), width)
            return
        below = [one for one in columns[1:] if one.is_prose]
        beside = [one for one in columns if one not in below]
        left_out = []
        for name in self.may_go:
            going = [one for one in beside[1:] if one.header.plain == name]
            if going and _total(one.width for one in beside) > width:
                beside.remove(going[0])
                left_out.append(name)
        widths = [one.width for one in beside]
        room = width - _total(widths) - len(GAP)
        too_few = left_out and len(beside) < FEWEST_COLUMNS
        if room < -len(GAP) or len(below) > 1 or too_few:
            yield from _stacked(columns, width)
            return
        for last in below:
            fit = sum(line.cell_len <= room for line in last.lines)
            if room >= max(last.header.cell_len, ROOM_LEAST) and 2 * fit > len(last.lines):
                beside, widths = [*beside, last], [*widths, room]
        yield from _grid(beside, widths, below, width)
        if left_out:
            names = ", ".join(one.header.plain for one in columns if one.header.plain in left_out)
            yield from _wrapped(Text(f"left out at {width} columns: {names}", "dim"), width)


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """[] where a word would be broken, or a cell would need many lines."""
    full, folded = [one.full_width for one in columns], [one.width for one in columns]
    for widths in (full, folded):
        if _total(widths) <= width:
            return widths
    for lines in range(1, MOST_LINES + 1):
        widths = [
            one.least_width(lines) if place and one.is_prose else one.width
            for place, one in enumerate(columns)
        ]
        left = width - _total(widths)
        if left >= 0:
            for place, most in enumerate(folded):  # what is left helps at least some of the cells
                more = min(left, most - widths[place])
                widths[place], left = widths[place] + more, left - more
            return widths
    return []


def _grid(
    columns: Sequence[Column], widths: Sequence[int], below: Sequence[Column], width: int
) -> Iterator[Text]:
    """Rows of cells side by side. `below`: what stands under its row, where it has no room."""
    if any(one.header.plain for one in columns):
        yield from _row([one.header for one in columns], columns, widths)
    for number in range(len(columns[0].cells)):
        cells, under = [one.cells[number] for one in columns], []
        for one in below:
            text, name = one.cells[number], one.header.plain
            room = widths[-1] if columns[-1] is one else 0
            if max((line.cell_len for line in text.split()), default=0) > room:
                named = name and len(columns) + (one not in columns) > 2
                under.append((Text(f"{name}: ") if named else Text()) + text)
                cells = [Text() if cell is text else cell for cell in cells]
        yield from _row(cells, columns, widths)
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


def _stacked(columns: Sequence[Column], width: int) -> Iterator[Text]:
    """The row's name, then its cells with their headers, as many on a line as fit."""
    for number, name in enumerate(columns[0].cells):
        named = f"{columns[0].header.plain} {name.plain}".strip() if name.plain.strip() else ""
        line = Text(named, "bold")
        for one in columns[1:]:
            if not one.cells[number].plain.strip():
                continue
            label = f"{one.header.plain}{':' if one.is_prose else ''} ".lstrip()
            pair = Text(label, "dim") + one.cells[number]
            if line and line.cell_len + len(GAP) + pair.cell_len > width:
                yield from _indented(line, width)
                line = Text(GAP)
            line = line + GAP + pair if line.plain.strip() else line + pair
        yield from _indented(line, width)


def _indented(line: Text, width: int) -> Iterator[Text]:
    """What is longer than the width goes on below, further in."""
    if line.cell_len <= width and "\n" not in line.plain:
        yield line
        return
    line = line[len(GAP) :] if line.plain.startswith(GAP) else line
    yield from (Text(GAP) + one for one in _wrapped(line, max(1, width - len(GAP))))


def _wrapped(text: Text, width: int) -> list[Text]:
    """At words; a word longer than the width is the only thing that is ever cut."""
    lines = list(_glued(text).wrap(get_console(), max(1, width), no_wrap=False, overflow="fold"))
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(GLUE, " ")
        line.no_wrap = True
    return lines or [Text()]


def _glued(text: Text) -> Text:
    """A number and its unit are one word."""
    glued = text.copy()
    glued.plain = UNIT.sub(GLUE, text.plain)
    return glued
