"""A table that fits the width it is printed in: no cell is ever broken.

What does not fit goes in this order: names get shorter, if the table has shorter ones; headers fold
at words, then cells do, into few lines; long texts stand below their row; columns that may be left
out are, and named below; else each row gets a few lines.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

GAP = "  "
PROSE_FROM = 12  # columns: a cell with spaces that is longer may be folded at its words
MOST_LINES = 3  # of a cell; what needs more is read with more ease below its row
ROOM_LEAST = 8  # columns, beside a row, for texts that are short
GLUE = "\ue000"  # of a private area of Unicode; no text has it
UNIT = re.compile(
    r"(?<=\d) (?=(?:[KMGT]i?B?|[nuµμm]?s|B|%|min|h|times|[KMGTP]?FLOP\S*)\b)|(?<= =) | (?== )"
)  # what stands between a number and its unit, and in N = 2k
FEWEST_COLUMNS = 3  # with fewer a table compares nothing: each row gets lines of its own


class FittedTable(Table):
    """A `rich.table.Table` without lines, drawn in its own way.

    `leave_out`: headers of columns that may go when the width is short, in this order. The first
    column names the row and always stays; `shorter` has other names for it, and
    `shorter_title` the title then.
    """

    def __init__(
        self,
        title: str = "",
        *,
        leave_out: Sequence[str] = (),
        shorter: Sequence[str] = (),
        shorter_title: str = "",
    ) -> None:
        super().__init__(title=title or None, title_justify="left", box=None, pad_edge=False)
        self.leave_out, self.shorter = tuple(leave_out), tuple(shorter)
        self.shorter_title = shorter_title

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn, width = _Drawn(self, console), options.max_width
        title = self.title
        if self.shorter and drawn.natural > width:
            drawn.columns[0] = drawn.columns[0].named([*map(Text, self.shorter)])
            title = self.shorter_title
        if title:
            yield from _wrapped(_text(title, "italic", console), width, console)
        yield from drawn.lines(width)


@dataclass(slots=True)
class _Column:
    """Cells as text, the header apart."""

    header: Text
    cells: list[Text]
    right: bool
    natural: int = field(init=False)  # width that folds nothing
    folded_header: int = field(init=False)  # width that folds no cell

    def __post_init__(self) -> None:
        cells = max((_width(line) for line in self._lines()), default=0)
        words = max(map(_width, self.header.plain.split()), default=0)
        self.natural = max(cells, self.header.cell_len)
        self.folded_header = max(cells, words)

    @property
    def is_prose(self) -> bool:
        several = any("\n" in cell.plain for cell in self.cells)
        return several or any(_width(line) > PROSE_FROM and " " in line for line in self._lines())

    def least(self, lines: int, console: Console) -> int:
        """The narrowest width that breaks no word, and folds no cell into more lines."""
        texts = [self.header, *self.cells]
        words = (word for text in texts for word in _glued(text).plain.split())
        least = max(map(_width, words), default=1)
        tried = range(least, max(least, self.folded_header))  # the wider, the fewer lines

        def fits(width: int) -> bool:
            return all(len(_wrapped(cell, width, console)) <= lines for cell in self.cells)

        return least + bisect_left(tried, True, key=fits)

    def named(self, cells: list[Text]) -> "_Column":
        return _Column(self.header, cells, self.right)

    def _lines(self) -> Iterator[str]:
        return (line for cell in self.cells for line in cell.plain.split("\n"))


class _Drawn:
    """One table on one console."""

    def __init__(self, table: FittedTable, console: Console) -> None:
        self.console = console
        self.columns = [
            _Column(
                _text(column.header, "bold", console),
                [_text(cell, "", console) for cell in column.cells],
                column.justify == "right",
            )
            for column in table.columns
        ]
        self.headed = any(column.header.plain for column in self.columns)
        self.leave_out = table.leave_out

    @property
    def natural(self) -> int:
        return _total(column.natural for column in self.columns)

    def lines(self, width: int) -> Iterator[Text]:
        places = list(range(len(self.columns)))
        widths = {place: self.columns[place].natural for place in places}
        if _total(widths.values()) <= width:
            return self._grid(places, widths, [], width)
        widths = {place: self.columns[place].folded_header for place in places}
        if _total(widths.values()) <= width:
            return self._grid(places, widths, [], width)
        prose = [place for place in places[1:] if self.columns[place].is_prose]
        fixed = [place for place in places if place not in prose]
        room = width - _total(widths[place] for place in fixed) - len(GAP) * len(prose)
        shares = self._shares(prose, room)
        if shares:
            return self._grid(places, widths | shares, [], width)
        left_out: list[int] = []
        for place in self._may_go(fixed):
            if _total(widths[place] for place in fixed) > width:
                left_out.append(place)
                fixed.remove(place)
        too_wide = _total(widths[place] for place in fixed) > width
        if too_wide or len(prose) > 1 or (left_out and len(fixed) < FEWEST_COLUMNS):
            return self._stacked(width)
        beside = self._beside(prose, width - _total(widths[place] for place in fixed) - len(GAP))
        rows = self._grid([*fixed, *beside], widths | beside, prose, width)
        return self._with_note(rows, left_out, width)

    def _shares(self, prose: Sequence[int], room: int) -> dict[int, int]:
        """The width of each long text, in as few lines as there is room; {} if those were many."""
        for lines in range(1, MOST_LINES + 1):
            shares = {n: self.columns[n].least(lines, self.console) for n in prose}
            left = room - sum(shares.values())
            if left < 0:
                continue
            for place in prose:  # what is left helps at least some of the cells
                more = min(left, self.columns[place].folded_header - shares[place])
                shares[place], left = shares[place] + more, left - more
            return shares
        return {}

    def _beside(self, prose: Sequence[int], room: int) -> dict[int, int]:
        """The last of the long texts and its room beside the row, if most of its cells fit."""
        if not prose:
            return {}
        column = self.columns[prose[-1]]
        widths = [_width(line) for cell in column.cells for line in cell.plain.split("\n")]
        most_fit = 2 * sum(width <= room for width in widths) > len(widths)
        least = max(column.header.cell_len, ROOM_LEAST)
        return {prose[-1]: room} if most_fit and room >= least else {}

    def _may_go(self, places: Sequence[int]) -> list[int]:
        named = {self.columns[place].header.plain: place for place in places[1:]}
        return [named[one] for one in self.leave_out if one in named]

    # ---- layouts ---------------------------------------------------------------------------------

    def _grid(
        self, places: Sequence[int], widths: dict[int, int], below: Sequence[int], width: int
    ) -> Iterator[Text]:
        """Rows of cells side by side; `below`: long texts that stand under their row."""
        columns = [self.columns[place] for place in places]
        spaces = [widths[place] for place in places]
        if self.headed:
            yield from self._row([column.header for column in columns], columns, spaces)
        for number in range(len(self.columns[0].cells) if self.columns else 0):
            cells = [column.cells[number] for column in columns]
            under: list[Text] = []
            for place in below:
                text = self.columns[place].cells[number]
                if place not in places or max(map(_width, text.plain.split("\n"))) > widths[place]:
                    under.append(self._labelled(place, text))
                    cells = [Text() if cell is text else cell for cell in cells]
            yield from self._row(cells, columns, spaces)
            for text in under:
                yield from self._indented(text, width)

    def _row(
        self, cells: Sequence[Text], columns: Sequence[_Column], spaces: Sequence[int]
    ) -> Iterator[Text]:
        folded = [
            _wrapped(cell, space, self.console) for cell, space in zip(cells, spaces, strict=True)
        ]
        for number in range(max(map(len, folded), default=0)):
            line = Text()
            for place, (lines, column) in enumerate(zip(folded, columns, strict=True)):
                cell = lines[number] if number < len(lines) else Text()
                space = " " * (spaces[place] - cell.cell_len)
                line.append(GAP if place else "")
                line.append_text(Text(space) + cell if column.right else cell + Text(space))
            line.rstrip()
            yield line

    def _with_note(
        self, rows: Iterator[Text], left_out: Sequence[int], width: int
    ) -> Iterator[Text]:
        yield from rows
        if left_out:
            names = ", ".join(self.columns[place].header.plain for place in sorted(left_out))
            note = f"left out at {width} columns: {names}"
            yield from _wrapped(Text(note, "dim"), width, self.console)

    def _labelled(self, place: int, text: Text) -> Text:
        """With its header, if the row has other cells."""
        header = self.columns[place].header.plain
        return Text(f"{header}: ") + text if header and len(self.columns) > 2 and text else text

    def _stacked(self, width: int) -> Iterator[Text]:
        """Cells with their headers, as many on a line as fit; further lines are indented."""
        for number in range(len(self.columns[0].cells)):
            line, indent = Text(), ""
            for place, column in enumerate(self.columns):
                cell = column.cells[number]
                if not cell.plain.strip():
                    continue
                label = column.header.plain
                colon = ":" if column.is_prose else ""
                pair = Text(f"{label}{colon} ", "dim") + cell if label and place else cell.copy()
                if not place:  # the row's name
                    pair = Text(f"{label} {cell.plain}".strip(), "bold")
                if line and len(indent) + line.cell_len + len(GAP) + pair.cell_len > width:
                    yield from self._indented(line, width, indent)
                    line, indent = Text(), GAP
                line = Text(GAP).join([line, pair]) if line else pair
            if line:
                yield from self._indented(line, width, indent)

    def _indented(self, text: Text, width: int, indent: str = GAP) -> Iterator[Text]:
        """What is longer than a line goes on below, further in."""
        if not text.plain.strip():
            return
        fits = "\n" not in text.plain and len(indent) + text.cell_len <= width
        lines = [text] if fits else _wrapped(text, max(1, width - len(GAP)), self.console)
        for number, line in enumerate(lines):
            yield Text(GAP if number else indent) + line


def _text(cell: object, style: str, console: Console) -> Text:
    """A cell as `Table` keeps it, with its markup."""
    if isinstance(cell, Text):
        return cell
    return console.render_str(str(cell), style=style, highlight=False, emoji=False)


def _wrapped(text: Text, width: int, console: Console) -> list[Text]:
    """At words; a word longer than the width is the only thing that is ever cut."""
    lines = list(_glued(text).wrap(console, max(1, width), no_wrap=False, overflow="fold"))
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


def _width(line: str) -> int:
    return Text(line).cell_len


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)
