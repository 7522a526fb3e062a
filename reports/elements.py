"""What sections and cards consist of: sentences, tables and figures, as plain values."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeVar

from .areas import Areas
from .formatting import capital, list_text, plural
from .quantity import Cell, Unit, cell_text, is_number
from .words import NOT_DECIDED, SEEN, Mark, Word

Scale = Literal["log", "linear"]
SCALES: dict[Scale, str] = {"log": "logarithmic", "linear": "linear"}
CROSSES = ("did not run", "out of memory")  # what they say, and where the axis has bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph.

    `finding`: an answer; `note`: an explanation, or why there is no data (a section of notes alone
    has none); `caution`: a reason to doubt the numbers; `log`: the output of a program.
    """

    text: str
    kind: Literal["finding", "note", "caution", "log"] = "finding"


def note(text: str) -> Text:
    return Text(text=text, kind="note")


def caution(text: str) -> Text:
    return Text(text=text, kind="caution")


Verdict = Literal["good", "bad", "mixed", "open"]
ASIDE = " · "  # in a cell of a card: pages write what follows smaller, below


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A cell that looks different. `strong`: highlighted; `failed`: a case that did not run or got
    worse; `verdict`: with a colour and an icon; `case`: what it is about (row_groups.case_key).
    """

    cell: Cell
    strong: bool = False
    failed: bool = False
    verdict: Verdict | None = None
    case: str | None = None

    @property
    def text(self) -> str:
        """As it is printed."""
        return cell_text(self.cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first column names the row. `table_of` makes one by its columns.

    `folded`: shown on demand. `tools`: the table of all rows, with filter and downloads; its first
    column has the case keys. `of_two_axes`: rows and columns may change places.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | Marked, ...], ...]
    folded: bool = False
    tools: bool = False
    of_two_axes: bool = False

    @property
    def table(self) -> "Table":
        """Its numbers, as other pictures have them."""
        return self

    @property
    def turned(self) -> "Table":
        """A row for each column, a column for each row."""
        names = tuple(row[0].text for row in self.cells)
        columns = zip(*(row[1:] for row in self.rows), strict=True)
        rows = zip(self.columns[1:], columns, strict=True)
        return replace(self, columns=("", *names), rows=tuple((name, *row) for name, row in rows))

    @property
    def upright(self) -> "Table":
        """Turned, if it may be and has more columns than rows: there is room downwards."""
        is_wide = self.of_two_axes and len(self.columns) > len(self.rows) + 1
        return self.turned if is_wide else self

    @property
    def cells(self) -> tuple[tuple[Marked, ...], ...]:
        """The rows, every cell with its look."""
        return tuple(tuple(map(marked_cell, row)) for row in self.rows)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows as they are printed."""
        return tuple(tuple(one.text for one in row) for row in self.cells)

    @property
    def numbers(self) -> frozenset[int]:
        """The columns of numbers, besides the first one: every page aligns them right.

        At least half of their cells have a number; others say why there is none.
        """
        columns = enumerate(zip(*self.cells, strict=True))
        filled = {at: [one.cell for one in column if one.text] for at, column in columns if at}
        return frozenset(
            at
            for at, cells in filled.items()
            if cells and 2 * sum(map(is_number, cells)) >= len(cells)
        )


def marked_cell(cell: Cell | Marked) -> Marked:
    return cell if isinstance(cell, Marked) else Marked(cell=cell)


Item = TypeVar("Item")


def table_of(
    title: str,
    items: Iterable[Item],
    columns: Mapping[str, Callable[[Item], Cell | Marked]],
    *,
    case: Callable[[Item], str | None] | None = None,
    optional: Collection[str] = (),
    folded: bool = False,
    most: int | None = None,
) -> Table:
    """A row per item. `columns`: by title, what makes the cell of an item.

    `case`: the case that a row is about; its first cell leads there. `optional`: columns that are
    left out if all their cells are "". `most`: of the rows; the title says if there are more.
    """
    every = list(items)
    if most is not None and len(every) > most:
        title, every = f"{title} (the first {most} of {len(every)})", every[:most]
    cells = {name: list(map(made, every)) for name, made in columns.items()}
    shown = [
        name
        for name, made in cells.items()
        if name not in optional or any(cell != "" for cell in made)
    ]
    if case is not None:
        first = zip(every, cells[shown[0]], strict=True)
        cells[shown[0]] = [replace(marked_cell(cell), case=case(item)) for item, cell in first]
    rows = zip(*(cells[name] for name in shown), strict=True)
    return Table(title=title, columns=tuple(shown), rows=tuple(rows), folded=folded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One reason to trust the numbers or not. What was not observed is unknown, never good."""

    label: str
    state: Literal["good", "caution", "unknown"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one backend in order of x.

    A y of None breaks a line; a `failed` point without y is drawn at the upper edge, and `untried`
    ones are failed by prediction. Names that are not backends of the page are grey. `busy`: which
    points other work disturbed. `notes`: what stands after each value, such as `, processor 3 ms`.
    `ending`: what stands below the name at its end. `why`: of failed points. `stop`: the x of the
    panel's line.
    """

    backend: str
    kind: Literal["measured", "formula", "failed", "untried"]
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    busy: tuple[bool, ...] = ()
    notes: tuple[str, ...] = ()
    ending: str = ""
    why: str = ""
    stop: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes. `unit` is that of y; `line` is a horizontal line with its label, drawn
    thick if `wide_line`; `title` tells it from other panels.
    """

    x_label: str
    y_label: str
    unit: Unit
    series: tuple[Series, ...]
    line: tuple[float, str] | None = None
    x_scale: Scale = "log"
    y_scale: Scale = "log"
    title: str = ""
    wide_line: bool = False

    def crosses(self, kind: str) -> str:
        """What its crosses of this kind say."""
        whys = {one.why for one in self.series if one.kind == kind}
        return (whys.pop() if len(whys) == 1 else "") or CROSSES[self.unit == "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Panels with a title that states the finding, and a table of their numbers.

    `about`: what screen readers should say beside axes and lines. `same_y`: panels share the limits
    of y. `names`: of series that are no backends; they get colours of this figure alone.
    """

    title: str
    caption: str
    panels: tuple[Panel, ...]
    table: Table
    about: str = ""
    same_y: bool = True
    names: tuple[str, ...] = ()

    def description(self, panel: Panel) -> str:
        """Of a panel, for screen readers."""
        kinds = {"measured": "Lines", "formula": "Lines by formula"}
        kinds |= {kind: f"Crosses, {panel.crosses(kind)}" for kind in ("failed", "untried")}
        names = [
            (words, list_text([one.backend for one in panel.series if one.kind == of]))
            for of, words in kinds.items()
        ]
        y, x = SCALES[panel.y_scale], SCALES[panel.x_scale]
        parts = [
            panel.title or self.title,
            f"{capital(panel.y_label)}, {y}, over {panel.x_label}, {x}",
            *(f"{words}: {some}" for words, some in names if some),
            "Bands are 95 % intervals" if any(any(one.low) for one in panel.series) else "",
            f"A horizontal line: {panel.line[1]}" if panel.line and panel.line[1] else "",
            self.about,
            "The table has every number.",
        ]
        return ". ".join(filter(None, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Rows of numbers >= 0, drawn as colours; NaN: missing."""

    label: str
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps:
    """Maps side by side with one colour scale. `x_names`, `y_names`: of columns and rows, which are
    numbered without them. Other fields as in Figure.
    """

    title: str
    caption: str
    description: str
    x_label: str
    y_label: str
    value_label: str
    maps: tuple[Map, ...]
    table: Table
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A whole and the share of it in use; `note` has the number. In the colour of `backend`.

    `parts`: it consists of so many equal ones. `squares`: so many are drawn in its place. `low`,
    `high`: ends of the share's interval. `mark`: a share to compare it with.
    """

    backend: str
    label: str
    share: float
    note: str
    parts: int = 1
    squares: float = 0
    low: float | None = None
    high: float | None = None
    mark: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Groups of bars: a heading and the bars. Other fields as in Figure.

    `framed`: the end of the whole is drawn, because it is a limit.
    """

    title: str
    caption: str
    description: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]
    table: Table
    framed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A ratio, its interval (none if counted), the `word` for that, and how it is `called` here."""

    ratio: float
    low: float | None = None
    high: float | None = None
    word: Word
    sure: Mark = SEEN
    called: str = ""

    @property
    def said(self) -> str:
        return self.sure.short if self.word == NOT_DECIDED else self.called or self.word

    @classmethod
    def of(cls, ratio: float, low: float, high: float, word: Word, sure: Mark = SEEN) -> "Dot":
        """With bounds unless they are not finite."""
        bounds = (low, high) if isfinite(low) and isfinite(high) else (None, None)
        return cls(ratio=ratio, low=bounds[0], high=bounds[1], word=word, sure=sure)


@dataclass(frozen=True, slots=True, kw_only=True)
class DotRow:
    """`group`: the rows' common heading. `dot`: None if there is no pair, `missing` says why.

    Group or label is a backend as a rule, and gives the mark. `remark`: what the heading adds in
    small letters, such as `counted`.
    """

    group: str
    label: str
    dot: Dot | None
    missing: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DotPlot:
    """Ratios on one log axis, with the line of 1 and the band that counts as the same."""

    rows: tuple[DotRow, ...]
    x_label: str
    band_ratio: float
    table: Table

    @property
    def description(self) -> str:
        """For screen readers."""
        return (
            f"{capital(self.x_label)}, logarithmic, of {plural(len(self.rows), 'row')}. Bars are"
            f" 95 % intervals. A band of {100 * self.band_ratio:.3g} % around 1 counts as the same."
            " The table has every number."
        )


Picture = Bars | DotPlot | Figure | Maps | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One answer: a sentence and the picture that shows it.

    `name`, `section`: of its subject. `subtitle`: what the picture shows. `decisions`: a table
    or bars beside it. `sure`: how sure it is, and how to be surer. `note`: how to read the picture.
    `wide`: it needs the whole width. `question`: of runs, if a page has several. `about`: what the
    sentence is about, where that stands in the title only. `areas`: beside the picture.
    """

    title: str
    sentence: str
    picture: Picture | None
    name: str = ""
    section: str = ""
    subtitle: str = ""
    decisions: Table | Bars | None = None
    sure: str = ""
    note: str = ""
    wide: bool = False
    question: str = ""
    about: str = ""
    areas: Areas | None = None


Drawable = Figure | Maps | Bars | DotPlot
Block = Text | Table | Figure | Maps | Bars
