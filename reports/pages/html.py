"""One self-contained page from one run or several: nothing is loaded from elsewhere, and it reads
the same without scripts.
"""

import os
import secrets
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..analysis.rows import case_key
from ..data.run_meta import Meta, device_name, question, scenario_name
from ..data.load import frame, read_run, told
from ..data.row_groups import records
from ..drawing.bars import svg as bars_svg
from .exactness_marks import marked, marked_names
from ..drawing.maps import svg as maps_svg
from ..drawing.plots import legend, svg, swatches
from ..elements import Bars, Block, Figure, Maps, Text
from ..formatting import visible
from ..sections import Section, shown
from ..sections.rows import MOST_ROWS
from ..sections.summary import MOST_QUESTIONS
from .page_data import embedded

HERE = Path(__file__).parent
DATA = '<script type="application/json" id="data">'
MOST_BYTES = 1_450_000  # beyond that the samples are thinned; a page of 500 cases may have 1.5 MB
SHORT = 32  # letters of a cell that stays on one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What all sections of a page share. `names`: each backend as it is shown; `cases`: the number
    of each row that the page has.
    """

    table: pd.DataFrame
    meta: Meta
    names: Mapping[str, str]
    cases: Mapping[str, int]

    @property
    def backends(self) -> list[str]:
        """As they are shown: the place of each is its look."""
        return list(self.names.values())


def render(run_paths: Sequence[str | Path]) -> str:
    """The page as text; the same runs give the same bytes. Raises BadRun."""
    runs = [read_run(path) for path in run_paths]
    table, meta = frame(runs), told(runs)
    known = table.head(MOST_ROWS)
    numbers = {case_key(row): number for number, row in enumerate(records(known[["run", "case"]]))}
    page = Page(table=table, meta=meta, names=marked_names(table, meta), cases=numbers)
    css, *scripts = (
        (HERE / name).read_text(encoding="utf-8")
        for name in ("report.css", "samples.js", "report.js")
    )
    js = "".join(scripts)
    text = _environment(numbers).get_template("page.html").render(
        title=_title(list(dict.fromkeys(map(scenario_name, meta.values())))),
        most_runs=MOST_QUESTIONS,
        runs=[_run(name, run) for name, run in meta.items()],
        notes=[f"{name}: {note}" for name, run in zip(meta, runs, strict=True) for note in run.notes],
        sections=[_section(section, page) for section in shown(meta)],
        policy=policy(css, js),
        css=Markup(css),  # noqa: S704 - our own file
        js=Markup(js),  # noqa: S704 - our own file
        swatches=Markup(swatches(page.backends)),  # noqa: S704 - no text of theirs is in it
    )  # fmt: skip
    # A name cannot write this: its signs would have been escaped. The data comes last, when it is
    # known how much room there is.
    before, place, after = text.rpartition(DATA)
    return before + place + embedded(known, MOST_BYTES - len(text.encode())) + after


def policy(css: str, js: str) -> str:
    """No address is ever loaded, and no script or style sheet counts but ours; SVG needs its style
    attributes.

    `style-src` is for browsers that do not know the two finer directives.
    """
    script, style = (b64encode(sha256(text.encode()).digest()).decode() for text in (js, css))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline';"
        f" style-src-elem 'sha256-{style}'; style-src-attr 'unsafe-inline'; img-src data:; base-uri"
        " 'none'; form-action 'none'"
    )


def write(run: str | Path | Sequence[str | Path], out: str | Path | None = None) -> Path:
    """Writes the page, whole or not at all, and returns where: unless told report.html, in the
    folder of a run, or beside several.

    Raises BadRun.
    """
    runs = [run] if isinstance(run, str | Path) else list(run)
    text = render(runs)
    folder = Path(runs[0]) if len(runs) == 1 else Path(runs[0]).resolve().parent
    target = Path(out) if out is not None else folder / "report.html"
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return target


def _environment(cases: Mapping[str, int]) -> Environment:
    def harmless(value: Any) -> Any:
        return (
            value
            if isinstance(value, Markup) or not isinstance(value, str)
            else visible(value, lines=True)
        )

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["is_long"] = lambda cell: len(cell) > SHORT
    environment.filters["number"] = cases.get
    return environment


def _run(name: str, run: Any) -> dict[str, str]:
    started = str(run.get("started_utc") or "")
    return {"name": name, "device": device_name(run), "started": started, "question": question(run)}


def _title(scenarios: Sequence[str]) -> str:
    """A page of many runs is not called by all their names: they stand below."""
    return (
        "attnbench:"
        f" {', '.join(scenarios) if len(scenarios) <= MOST_QUESTIONS else f'{len(scenarios)} scenarios'}"
    )


def _section(section: Section, page: Page) -> dict[str, Any]:
    """Blocks of one kind that follow each other stand together: sentences in a list, figures in a
    grid.
    """
    name = section.__name__.rpartition(".")[2]
    parts: list[dict[str, Any]] = []
    for number, block in enumerate(_blocks(section, page)):
        kind = block.kind if isinstance(block, Text) else type(block).__name__.lower()
        if not parts or parts[-1]["kind"] != kind:
            parts.append({"kind": kind, "blocks": []})
        drawn, looks = "", []
        if isinstance(block, Figure):
            drawn = Markup(svg(block, page.backends, f"{name}-{number}", page.cases))  # noqa: S704 - all text in it is escaped
            looks = legend(block, page.backends)
        elif isinstance(block, Maps):
            drawn = Markup(maps_svg(block, f"{name}-{number}"))  # noqa: S704 - likewise
        elif isinstance(block, Bars):
            drawn = Markup(bars_svg(block, f"{name}-{number}"))  # noqa: S704 - likewise
        wide = isinstance(block, Maps) or (isinstance(block, Figure) and len(block.panels) > 1)
        parts[-1]["blocks"].append({"is": block, "svg": drawn, "legend": looks, "wide": wide})
    return {"name": name, "title": section.TITLE, "parts": parts}


def _blocks(section: Section, page: Page) -> Iterator[Block]:
    lacking = [column for column in section.NEEDS if column not in page.table.columns]
    if lacking:
        yield Text(text=f"Not shown: the runs have no {', '.join(lacking)}.", kind="note")
    else:
        yield from marked(section.render(page.table, page.meta), page.names)
