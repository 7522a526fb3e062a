"""One self-contained page of one run or several: it loads nothing, and works without scripts."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..data.row_groups import case_key, records
from ..data.run_meta import device_name, question, scenario_name
from ..drawing import bars, maps, plots
from ..elements import Bars, Figure, Maps, Text
from ..formatting import visible
from ..sections import Section, name_of
from ..sections.rows import MOST_ROWS
from ..sections.summary import MOST_QUESTIONS
from .page_data import page_data
from .report import Report

HERE = Path(__file__).parent
DATA = '<script type="application/json" id="data">'
MOST_BYTES = 1_450_000  # above it the samples are thinned; a page of 500 cases may have 1.5 MB
SHORT = 32  # characters of a cell that stays on one line


def render(report: Report) -> str:
    """The page as text; the same runs give the same bytes."""
    known = report.frame.head(MOST_ROWS)
    numbers = {case_key(row): number for number, row in enumerate(records(known[["run", "case"]]))}
    css, pictures, *scripts = (
        (HERE / name).read_text(encoding="utf-8")
        for name in ("report.css", "pictures.css", "samples.js", "report.js")
    )
    css += pictures
    js = "".join(scripts)
    scenarios = list(dict.fromkeys(map(scenario_name, report.meta.values())))
    few = len(scenarios) <= MOST_QUESTIONS
    notes = (
        f"{name}: {note}"
        for name, run in zip(report.meta, report.runs, strict=True)
        for note in run.notes
    )
    text = _environment(numbers).get_template("page.html").render(
        title=f"attnbench: {', '.join(scenarios) if few else f'{len(scenarios)} scenarios'}",
        most_runs=MOST_QUESTIONS,
        runs=[_run(name, run) for name, run in report.meta.items()],
        notes=list(notes),
        sections=[_section(section, report, numbers) for section in report.sections],
        policy=policy(css, js),
        css=Markup(css),  # noqa: S704 - our own file
        js=Markup(js),  # noqa: S704 - our own file
        swatches=Markup(plots.swatches(report.backends)),  # noqa: S704 - contains no foreign text
    )  # fmt: skip
    # No name can contain DATA: it would be escaped. The data comes last, when its room is known.
    before, place, after = text.rpartition(DATA)
    return before + place + page_data(known, MOST_BYTES - len(text.encode())) + after


def policy(css: str, js: str) -> str:
    """Load nothing, and run only our own script and style sheet; SVG needs its style attributes.

    `style-src` is for browsers without the two finer directives.
    """
    script, style = (b64encode(sha256(text.encode()).digest()).decode() for text in (js, css))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline';"
        f" style-src-elem 'sha256-{style}'; style-src-attr 'unsafe-inline'; img-src data:; base-uri"
        " 'none'; form-action 'none'"
    )


def _environment(cases: Mapping[str, int]) -> Environment:
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
    return environment


def _run(name: str, run: Any) -> dict[str, str]:
    started = str(run.get("started_utc") or "")
    return {"name": name, "device": device_name(run), "started": started, "question": question(run)}


def _section(section: Section, report: Report, cases: Mapping[str, int]) -> dict[str, Any]:
    """Consecutive blocks of one kind form a part: sentences a list, figures a grid."""
    parts: list[dict[str, Any]] = []
    for number, block in enumerate(report.blocks(section)):
        kind = block.kind if isinstance(block, Text) else type(block).__name__.lower()
        if not parts or parts[-1]["kind"] != kind:
            parts.append({"kind": kind, "blocks": []})
        drawn, looks, name = "", [], f"{name_of(section)}-{number}"
        if isinstance(block, Figure):
            drawn = plots.svg(block, report.backends, name, cases)
            looks = plots.legend(block, report.backends)
        elif isinstance(block, Maps):
            drawn = maps.svg(block, name)
        elif isinstance(block, Bars):
            drawn = bars.svg(block, name)
        wide = isinstance(block, Maps) or (isinstance(block, Figure) and len(block.panels) > 1)
        svg = Markup(drawn)  # noqa: S704 - all text in it is escaped
        parts[-1]["blocks"].append({"is": block, "svg": svg, "legend": looks, "wide": wide})
    return {"name": name_of(section), "title": section.TITLE, "parts": parts}
