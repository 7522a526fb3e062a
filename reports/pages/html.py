"""One self-contained page of one run or several: it loads nothing, and works without scripts."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from ...harness.files.printable import visible
from ...harness.files.safe_files import write_whole
from ..data.row_groups import case_key
from ..drawing.palette import places_of, tone
from ..drawing.picture import drawn
from ..elements import ASIDE, Bars, Block, Drawable, Table, Text
from ..formatting import bytes_text, capital, count_text
from ..subjects.rows import MOST_ROWS
from .page_data import page_data
from .report import Report, per_question
from .run_titles import MOST_NAMED, pattern_of, questions

HERE = Path(__file__).parent
DATA = '<script type="application/json" id="data">'
LATER = 'document.write("<noscript>")'  # page.html says why
MOST_BYTES = 1_450_000  # above it the samples are thinned; a page of 500 cases may have 1.5 MB
SHORT = 32  # characters of a cell that stays on one line
MOST_COLUMNS = 48  # with a rule of their own in the style sheet


def render(report: Report) -> str:
    """The page as text; the same runs give the same bytes."""
    known = report.rows[:MOST_ROWS]
    numbers = {case_key(row): number for number, row in enumerate(known)}
    css = _text_of(*sorted(HERE.glob("*.css"))) + "".join(_right_aligned())
    js = _text_of(HERE / "samples.js", HERE / "report.js")

    def draw(picture: Drawable, name: str) -> Markup:
        svg = drawn(picture, report.backends, name)
        return Markup(svg)  # noqa: S704 - all text in it is escaped

    text = _template().render(
        report=report,
        answers=per_question(report),
        scenario=report.heading if report.asks != report.heading else "",
        asked={name: questions({name: run}) for name, run in report.meta.items()},
        most_named=MOST_NAMED,
        links=list(_links(report)),
        number=numbers.get,
        coloured=partial(coloured, backends=report.backends),
        draw=draw,
        tone_of=partial(tone, places=places_of(report.backends)),
        policy=policy(css, LATER, js),
        later=Markup(LATER),  # noqa: S704 - ours
        css=Markup(css),  # noqa: S704 - our own file
        js=Markup(js),  # noqa: S704 - our own file
    )
    # No name can contain DATA: it would be escaped. The data comes last, when its room is known.
    before, place, after = text.rpartition(DATA)
    return before + place + page_data(known, MOST_BYTES - len(text.encode())) + after


def write_page(report: Report, path: Path) -> None:
    """At this path, whole or not at all; a link is replaced. Raises OSError."""
    write_whole(path, render(report))


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


@cache
def _template() -> Template:
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
    environment.filters["aligned"] = aligned
    environment.filters["code"] = lambda text: coloured(text, ())
    environment.filters["aside"] = lambda cell: cell.partition(ASIDE)
    environment.filters["count"] = count_text
    environment.filters["bytes"] = bytes_text
    environment.filters["by_kind"] = lambda blocks: groupby(enumerate(blocks), _kind)
    environment.tests["long"] = lambda cell: len(cell) > SHORT
    environment.tests["table"] = lambda shown: isinstance(shown, Table)
    environment.tests["bars"] = lambda shown: isinstance(shown, Bars)
    return environment.get_template("page.html")


def _kind(numbered: tuple[int, Block]) -> str:
    """By which consecutive blocks form a part: sentences a list, figures a grid."""
    block = numbered[1]
    return block.kind if isinstance(block, Text) else type(block).__name__.lower()


def aligned(table: Table) -> str:
    """The classes that align columns of numbers right: `r2 r5`."""
    places = sorted(place + 1 for place in table.numbers)
    return " ".join(f"r{place}" for place in places if place <= MOST_COLUMNS)


def coloured(text: str, backends: Sequence[str]) -> Markup:
    """The text as HTML, with names of backends in their colours, and commands as code: they stand
    between backticks.
    """
    said, *rest = text.split("`", 2)
    if len(rest) == 2:
        code = Markup("<code>{}</code>").format(visible(rest[0]))
        return Markup("").join([coloured(said, backends), code, coloured(rest[1], backends)])
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
    """The navigation: the sections by short names."""
    yield "#answers", "Answer"
    for section in report.sections:
        names = [re.sub("[-_]", " ", re.sub(r"-\d+$", "", card.name)) for card in section.cards]
        short = list(dict.fromkeys(names))
        asked = section.name == "asked" and len(short) == 1
        yield f"#{section.name}", capital(short[0]) if asked else section.title
