"""One self-contained page of one run or several: it loads nothing, and works without scripts."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from ...harness.files.printable import visible
from ...harness.files.safe_files import write_whole
from ..data.row_groups import case_key
from ..drawing.palette import places_of, tone
from ..drawing.picture import drawn
from ..elements import ASIDE, Bars, Card, DotPlot, Drawable, Table, Text
from ..formatting import capital
from ..subjects.rows import MOST_ROWS
from .exactness_marks import pattern_of
from .page_data import page_data
from .report import Part, Report, Section, per_question
from .run_titles import MOST_NAMED, questions

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
    notes = (
        f"{report.titles[name]}: {note}"
        for name, run in zip(report.meta, report.runs, strict=True)
        for note in run.notes
    )
    asked_by = {name: questions({name: run}) for name, run in report.meta.items()}
    scenario = report.heading if report.asks != report.heading else ""
    text = _template().render(
        number=numbers.get,
        coloured=partial(coloured, backends=report.backends),
        title=report.asks,
        runs=[
            {"title": title or scenario, "about": about, "questions": asked_by.get(name, ())}
            for name, (title, about) in report.headers.items()
        ],
        most_named=MOST_NAMED,
        answers=[_answer(one, report) for one in per_question(report)],
        stopped=report.stopped,
        notes=list(notes),
        trust=report.trust,
        links=list(_links(report)),
        sections=[_section(one, report) for one in report.sections],
        policy=policy(css, LATER, js),
        later=Markup(LATER),  # noqa: S704 - ours
        css=Markup(css),  # noqa: S704 - our own file
        js=Markup(js),  # noqa: S704 - our own file
    )  # fmt: skip
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
    environment.filters["is_long"] = lambda cell: len(cell) > SHORT
    environment.filters["aligned"] = aligned
    environment.filters["aside"] = lambda cell: cell.partition(ASIDE)
    return environment.get_template("page.html")


def aligned(table: Table) -> str:
    """The classes that align columns of numbers right: `r2 r5`."""
    places = sorted(place + 1 for place in table.numbers)
    return " ".join(f"r{place}" for place in places if place <= MOST_COLUMNS)


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
    """The navigation: the sections by short names."""
    yield "#answers", "Answer"
    for section in report.sections:
        names = [re.sub("[-_]", " ", re.sub(r"-\d+$", "", card.name)) for card in section.cards]
        short = list(dict.fromkeys(names))
        asked = section.name == "asked" and len(short) == 1
        yield f"#{section.name}", capital(short[0]) if asked else section.title


def _answer(report: Report, page: Report) -> dict[str, Any]:
    """Of one question, which stands above it if the page has several."""
    return {
        "question": "" if report is page else " ".join(report.questions),
        "answer": report.answer,
        "certainty": report.certainty,
        "regret": report.regret if report.lead is None else None,
    }


def _card(card: Card, section: Section, report: Report) -> dict[str, Any]:
    """A card with its drawing, or with its table where that is the picture."""
    picture, name = card.picture, f"card-{card.name}"
    title = f"{card.title}: " if card.title != section.title else ""
    found = {"is": card, "id": name, "dots": isinstance(picture, DotPlot)}
    found |= {"about": (title + card.subtitle).removesuffix(": ")}
    found |= {"svg": "", "bars": "", "tables": [], "narrow_table": None, "numbers": None}
    if isinstance(picture, Table):
        turned = 1 < len(picture.rows) + 1 < len(picture.columns)
        found |= {"tables": [picture], "narrow_table": picture.turned if turned else None}
    elif picture is not None:
        found |= {"svg": _drawn(picture, report, name), "numbers": picture.table}
        if isinstance(card.decisions, Bars):
            found |= {"bars": _drawn(card.decisions, report, f"{name}-bars")}
        elif card.decisions is not None:
            found |= {"tables": [card.decisions.upright]}
    return found


def _drawn(picture: Drawable, report: Report, name: str) -> Markup:
    svg = drawn(picture, report.backends, name)
    return Markup(svg)  # noqa: S704 - all text in it is escaped


def _section(section: Section, report: Report) -> dict[str, Any]:
    in_time = section.name == "time" and report.lead is not None
    return {
        "name": section.name,
        "title": section.title,
        "cards": [_card(card, section, report) for card in section.cards],
        "lines": section.lines,
        "regret": report.regret if in_time else None,
        "parts": [_part(part, report) for part in section.parts],
    }


def _part(part: Part, report: Report) -> dict[str, Any]:
    """Consecutive blocks of one kind form a part: sentences a list, figures a grid."""
    parts: list[dict[str, Any]] = []
    for number, block in enumerate(part.blocks):
        kind = block.kind if isinstance(block, Text) else type(block).__name__.lower()
        if not parts or parts[-1]["kind"] != kind:
            parts.append({"kind": kind, "blocks": []})
        found: dict[str, Any] = {"is": block}
        if not isinstance(block, Text | Table):
            found["svg"] = _drawn(block, report, f"{part.name}-{number}")
        parts[-1]["blocks"].append(found)
    return {"name": part.name, "title": part.title, "parts": parts}
