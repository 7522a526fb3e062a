"""One self-contained page of one run or several: it loads nothing, and works without scripts."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ...harness.files.printable import visible
from ..data.row_groups import case_key
from ..drawing.palette import places_of, tone
from ..drawing.picture import drawn
from ..elements import ASIDE, Card, DotPlot, Drawable, Figure, Maps, Table, Text, WallChart
from ..subjects.rows import MOST_ROWS
from .exactness_marks import pattern_of
from .page_data import page_data
from .report import Part, Report
from .run_titles import MOST_NAMED, questions

HERE = Path(__file__).parent
DATA = '<script type="application/json" id="data">'
LATER = 'document.write("<noscript>")'  # page.html says why
MOST_BYTES = 1_450_000  # above it the samples are thinned; a page of 500 cases may have 1.5 MB
SHORT = 32  # characters of a cell that stays on one line
MOST_COLUMNS = 48  # with a rule of their own in the style sheet
LINKS = 6  # in the navigation: so many short words fit on one line of a phone
WIDEST_NAME_EM = 14  # of the first column of a table on a card


def render(report: Report) -> str:
    """The page as text; the same runs give the same bytes."""
    known = report.rows[:MOST_ROWS]
    numbers = {case_key(row): number for number, row in enumerate(known)}
    css = _text_of(*sorted(HERE.glob("*.css"))) + "".join(_right_aligned())
    js = _text_of(HERE / "samples.js", HERE / "report.js")
    asked = {card.question for card in report.cards}  # those stand above their answers
    notes = (
        f"{report.titles[name]}: {note}"
        for name, run in zip(report.meta, report.runs, strict=True)
        for note in run.notes
    )
    text = _environment(numbers, report.backends).get_template("page.html").render(
        title=report.heading,
        runs=[
            {"title": title, "about": about, "questions": questions({name: report.meta[name]})}
            for name, (title, about) in report.headers.items()
        ],
        few=len(report.meta) <= MOST_NAMED,
        questions=[one for one in report.questions if one not in asked],
        take=report.answer,
        notes=list(notes),
        trust=report.trust,
        badges=report.badges,
        links=list(_links(report)),
        groups=[
            _answered(question, list(cards), report, numbers)
            for question, cards in groupby(report.cards, key=lambda card: card.question)
        ],
        sections=[_section(part, report, numbers) for part in report.answered],
        policy=policy(css, LATER, js),
        later=Markup(LATER),  # noqa: S704 - ours
        css=Markup(css),  # noqa: S704 - our own file
        js=Markup(js),  # noqa: S704 - our own file
    )  # fmt: skip
    # No name can contain DATA: it would be escaped. The data comes last, when its room is known.
    before, place, after = text.rpartition(DATA)
    return before + place + page_data(known, MOST_BYTES - len(text.encode())) + after


def policy(css: str, *scripts: str) -> str:
    """Load nothing, and run only our own scripts and style sheet; SVG needs its style attributes.

    `style-src` is for browsers without the two finer directives.
    """
    ours = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {ours}; style-src 'unsafe-inline';"
        f" style-src-elem {_hash(css)}; style-src-attr 'unsafe-inline'; img-src data:; base-uri"
        " 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _text_of(*files: Path) -> str:
    return "".join(file.read_text(encoding="utf-8") for file in files)


def _right_aligned() -> Iterator[str]:
    """A rule per column: a class in each cell would be a tenth of the page."""
    for column in range(2, MOST_COLUMNS + 1):
        yield f".r{column} tr>:nth-child({column}){{text-align:right}}"


def _environment(cases: Mapping[str, int], backends: Sequence[str]) -> Environment:
    def safe(value: Any) -> Any:
        is_plain = isinstance(value, str) and not isinstance(value, Markup)
        return visible(value, lines=True) if is_plain else value

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=safe,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["is_long"] = lambda cell: len(cell) > SHORT
    environment.filters["number"] = cases.get
    environment.filters["aligned"] = aligned
    environment.filters["coloured"] = lambda text: coloured(text, backends)
    environment.filters["names_em"] = names_em
    environment.filters["aside"] = lambda cell: cell.partition(ASIDE)
    return environment


def aligned(table: Table) -> str:
    """The classes that align columns of numbers right: `r2 r5`."""
    places = sorted(place + 1 for place in table.numbers)
    return " ".join(f"r{place}" for place in places if place <= MOST_COLUMNS)


def names_em(table: Table) -> float:
    """A width for the first column: the others then share the rest evenly."""
    longest = max((len(row[0]) for row in (*table.texts, table.columns) if row), default=0)
    return min(0.7 * longest + 1.5, WIDEST_NAME_EM)


def coloured(text: str, backends: Sequence[str]) -> Markup:
    """The text as HTML, with names of backends in their colours."""
    if not backends:
        return escape(visible(text))
    parts, end, places = [], 0, places_of(backends)
    for found in pattern_of(backends).finditer(text):
        colour = tone(found.group(), places)
        name = escape(visible(found.group()))
        parts += [escape(visible(text[end : found.start()]))]
        parts += [Markup('<b class="c-{}">{}</b>').format(colour, name)]
        end = found.end()
    return Markup("").join([*parts, escape(visible(text[end:]))])


def _links(report: Report) -> Iterator[tuple[str, str]]:
    """The navigation: the answers, then how far to trust them and where the rest is."""
    names = {part.name for part in report.answered}
    others = [("trust-list", "Checks")] if report.badges else []
    others += [("sections", "Details")]
    others += [(name, name.capitalize()) for name in ("method", "rows") if name in names]
    room = max(LINKS - len(others), LINKS // 2)
    answers = [
        (f"card-{card.name}", re.sub("[-_]", " ", card.name).capitalize())
        for card in report.cards[:room]
    ]
    if len(answers) + len(others) > LINKS:
        others = [link for link in others if link[0] != "method"]
    yield from answers + others


def _placed(cards: Sequence[Card]) -> Iterator[tuple[Card, str]]:
    """Each card with its column: full, or "" for the next free one, left or right.

    Of two cards side by side, the one with a chart of memory is in the wider column.
    """
    narrow = [card for card in cards if not card.wide]
    places: dict[str, str] = {}
    for one, other in zip(narrow[::2], narrow[1::2], strict=False):
        if isinstance(other.picture, WallChart) and not isinstance(one.picture, WallChart):
            places |= {one.name: "right", other.name: "left"}
    for card in cards:
        yield card, "full" if card.wide else places.get(card.name, "")


def _answered(
    question: str, cards: Sequence[Card], report: Report, cases: Mapping[str, int]
) -> dict[str, Any]:
    """The cards under a question; on a phone the sentences of the `first` two stand above both."""
    made = [_card(card, report, place, cases) for card, place in _placed(cards)]
    pictured = [one for one in made if one["svg"]][:2]
    return {"question": question, "cards": made, "first": pictured if len(pictured) == 2 else []}


def _card(card: Card, report: Report, place: str, cases: Mapping[str, int]) -> dict[str, Any]:
    """A card with its drawing, or with its table where that is the picture."""
    picture, name = card.picture, f"card-{card.name}"
    found = {"is": card, "id": name, "place": place, "dots": isinstance(picture, DotPlot)}
    found |= {"svg": "", "table": None, "narrow_table": None, "numbers": None}
    if isinstance(picture, Table):
        turned = 1 < len(picture.rows) + 1 < len(picture.columns)
        return found | {
            "table": picture,
            "narrow_table": transposed(picture) if turned else None,
        }
    if picture is None:
        return found
    return found | {"numbers": picture.table, "svg": _drawn(picture, report.backends, name, cases)}


def _drawn(
    picture: Drawable, backends: Sequence[str], name: str, cases: Mapping[str, int]
) -> Markup:
    return Markup(drawn(picture, backends, name, cases))  # noqa: S704 - all text in it is escaped


def transposed(table: Table) -> Table:
    """The same cells with rows for columns, for narrow pages."""
    rows = zip(table.columns[1:], *(row[1:] for row in table.rows), strict=True)
    names = (table.columns[0], *(row[0] for row in table.texts))
    return replace(table, columns=names, rows=tuple(rows))


def _section(part: Part, report: Report, cases: Mapping[str, int]) -> dict[str, Any]:
    """Consecutive blocks of one kind form a part: sentences a list, figures a grid."""
    parts: list[dict[str, Any]] = []
    for number, block in enumerate(part.blocks):
        kind = block.kind if isinstance(block, Text) else type(block).__name__.lower()
        if not parts or parts[-1]["kind"] != kind:
            parts.append({"kind": kind, "blocks": []})
        found: dict[str, Any] = {"is": block}
        if not isinstance(block, Text | Table):
            wide = isinstance(block, Maps | WallChart) or (
                isinstance(block, Figure) and len(block.panels) > 1
            )
            found["size"] = "wide" if wide else ""
            found["svg"] = _drawn(block, report.backends, f"{part.name}-{number}", cases)
        parts[-1]["blocks"].append(found)
    return {"name": part.name, "title": part.title, "parts": parts}
