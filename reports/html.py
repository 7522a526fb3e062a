"""One self-contained page from one run or several: nothing is loaded from elsewhere, and it reads the same without scripts."""

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .analysis.context import Meta, device_name, scenario_name
from .blocks import Block, Figure, Text
from .load import frame, read_run, told
from .plots import svg
from .sections import Section, sections
from .words import visible

HERE = Path(__file__).parent
SHORT = 32  # letters of a cell that stays on one line


def render(run_paths: Sequence[str | Path]) -> str:
    """The page as text; the same runs give the same bytes. Raises BadRun."""
    runs = [read_run(path) for path in run_paths]
    table = frame(runs)
    meta = told(runs)
    backends = list(dict.fromkeys(table["backend"]))
    page = _environment().get_template("page.html")
    return page.render(
        title=f"attnbench: {', '.join(dict.fromkeys(map(scenario_name, meta.values())))}",
        runs=[_run(name, run) for name, run in meta.items()],
        notes=[f"{name}: {note}" for name, run in zip(meta, runs, strict=True) for note in run.notes],
        sections=[_section(section, table, meta, backends) for section in sections()],
        css=Markup((HERE / "report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
    )


def write(run: str | Path, out: str | Path | None = None) -> Path:
    """Writes the page of one run, whole or not at all, and returns where: RUN/report.html unless told. Raises BadRun."""
    text = render([run])
    target = Path(out) if out is not None else Path(run) / "report.html"
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


def _environment() -> Environment:
    def harmless(value: Any) -> Any:
        return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value, lines=True)

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, finalize=harmless, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["is_short"] = lambda cell: len(cell) <= SHORT
    return environment


def _run(name: str, run: Any) -> dict[str, str]:
    return {"name": name, "device": device_name(run), "scenario": scenario_name(run), "started": str(run.get("started_utc") or "")}


def _section(section: Section, table: pd.DataFrame, meta: Meta, backends: list[str]) -> dict[str, Any]:
    """Blocks of one kind that follow each other stand together: sentences in a list, figures in a grid."""
    name = section.__name__.rpartition(".")[2]
    parts: list[dict[str, Any]] = []
    for number, block in enumerate(_blocks(section, table, meta)):
        kind = block.kind if isinstance(block, Text) else type(block).__name__.lower()
        if not parts or parts[-1]["kind"] != kind:
            parts.append({"kind": kind, "blocks": []})
        drawn = ""
        if isinstance(block, Figure):
            drawn = Markup(svg(block, backends, f"{name}-{number}"))  # noqa: S704 - matplotlib escapes the text in it
        parts[-1]["blocks"].append({"is": block, "svg": drawn})
    return {"name": name, "title": section.TITLE, "parts": parts}


def _blocks(section: Section, table: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    lacking = [column for column in section.NEEDS if column not in table.columns]
    if lacking:
        yield Text(text=f"Not shown: the runs have no {', '.join(lacking)}.", kind="note")
    else:
        yield from section.render(table, meta)
