"""A table that fits the width it is printed in: no cell is ever broken.

What does not fit goes in this order: names get shorter, if the table has shorter ones; long texts
fold at words, or stand below their row; columns are left out, by rank, and named below; a narrow
terminal gets a few lines per row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

GAP = "  "
PROSE_FROM = 20  # columns: a cell with spaces that is longer may be folded at its words
PROSE_LEAST = 28  # columns: a narrower one is read with more ease below its row
ROOM_LEAST = 8  # columns, beside a row, for texts that are short
FEWEST_COLUMNS = 3  # with fewer a table compares nothing: each row gets lines of its own


class FittedTable(Table):
    """A `rich.table.Table` without lines, drawn in its own way.

    `leave_out`: headers of the columns that go first when the width is short; then the last ones.
    The first column names the row and always stays; `shorter` has other names for it, and
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
    least: int = field(init=False)  # width that breaks no word
    natural: int = field(init=False)  # width that folds nothing

    def __post_init__(self) -> None:
        texts = [self.header, *self.cells]
        lines = [line for text in texts for line in text.plain.split("\n")]
        self.natural = max(map(_width, lines))
        words = (word for line in lines for word in line.split())
        self.least = max(map(_width, words), default=0)

    def named(self, cells: list[Text]) -> "_Column":
        return _Column(self.header, cells, self.right)

    @property
    def is_prose(self) -> bool:
        folds = any("\n" in text.plain for text in self.cells)
        return folds or (self.natural > PROSE_FROM and self.least < self.natural)


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
        prose = [place for place in places[1:] if self.columns[place].is_prose]
        fixed = [place for place in places if place not in prose]
        room = width - _total(widths[place] for place in fixed) - len(GAP) * len(prose)
        shares = self._shares(prose, room)
        if shares:
            return self._grid(places, widths | shares, [], width)
        left_out: list[int] = []
        while _total(widths[place] for place in fixed) > width and len(fixed) > 1:
            left_out.append(self._first_to_go(fixed))
            fixed.remove(left_out[-1])
        too_wide = widths[fixed[0]] > width
        if too_wide or (left_out and len(fixed) < FEWEST_COLUMNS):
            return self._stacked(width)
        beside = self._beside(prose, width - _total(widths[place] for place in fixed) - len(GAP))
        rows = self._grid([*fixed, *beside], widths | beside, prose, width)
        return self._with_note(rows, left_out, width)

    def _shares(self, prose: Sequence[int], room: int) -> dict[int, int]:
        """The width of each long text; {} if there is too little for words, or for reading."""
        least = {n: max(self.columns[n].least, PROSE_LEAST) for n in prose}
        if not prose or sum(least.values()) > room:
            return {}
        shares, left = dict(least), room - sum(least.values())
        for place in prose:  # the first gets what it can use
            more = max(0, min(left, self.columns[place].natural - shares[place]))
            shares[place], left = shares[place] + more, left - more
        return shares

    def _beside(self, prose: Sequence[int], room: int) -> dict[int, int]:
        """The last of the long texts and its room beside the row, if most of its cells fit."""
        if not prose:
            return {}
        column = self.columns[prose[-1]]
        widths = [_width(line) for cell in column.cells for line in cell.plain.split("\n")]
        most_fit = 2 * sum(width <= room for width in widths) > len(widths)
        least = max(column.header.cell_len, ROOM_LEAST)
        return {prose[-1]: room} if most_fit and room >= least else {}

    def _first_to_go(self, places: Sequence[int]) -> int:
        named = {self.columns[place].header.plain: place for place in places[1:]}
        return next((named[one] for one in self.leave_out if one in named), places[-1])

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
            under = [self.columns[place].cells[number] for place in below if place not in places]
            for place, at in ((place, places.index(place)) for place in below if place in places):
                if max(map(_width, cells[at].plain.split("\n"))) > widths[place]:
                    under, cells[at] = [*under, cells[at]], Text()
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

    def _stacked(self, width: int) -> Iterator[Text]:
        """The row's name, then its other cells with their headers, as many on a line as fit."""
        first, *others = self.columns
        for number, name in enumerate(first.cells):
            yield from _wrapped(name, width, self.console)
            line = Text()
            for column in others:
                cell = column.cells[number]
                if not cell.plain.strip():
                    continue
                pair = column.header.copy()
                pair.style = "dim"
                pair = Text(" ").join([pair, cell]) if pair.plain else cell.copy()
                if line and line.cell_len + len(GAP) + pair.cell_len > width - len(GAP):
                    yield from self._indented(line, width)
                    line = Text()
                line = Text(GAP).join([line, pair]) if line else pair
            if line:
                yield from self._indented(line, width)

    def _indented(self, text: Text, width: int) -> Iterator[Text]:
        if text.plain.strip():
            for line in _wrapped(text, max(1, width - len(GAP)), self.console):
                yield Text(GAP) + line


def _text(cell: object, style: str, console: Console) -> Text:
    """A cell as `Table` keeps it, with its markup."""
    if isinstance(cell, Text):
        return cell
    text = console.render_str(str(cell), style=style, highlight=False, emoji=False)
    return text


def _wrapped(text: Text, width: int, console: Console) -> list[Text]:
    """At words; a word longer than the width is the only thing that is ever cut."""
    lines = list(text.wrap(console, max(1, width), no_wrap=False, overflow="fold"))
    for line in lines:
        line.rstrip()
        line.no_wrap = True
    return lines or [Text()]


def _width(line: str) -> int:
    return Text(line).cell_len


def _total(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)
