"""The figures of a run as files of their own, for papers and slides."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ..data.load import frame, read_run, told
from ..drawing.bars import draw as draw_bars
from .exactness_marks import marked, marked_names
from ..drawing.plots import draw
from ..elements import Bars, Figure
from ..sections import shown

Kind = Literal["svg", "png", "pdf"]
PNG_DPI = 200


def write_figures(
    run_paths: Sequence[str | Path], folder: str | Path, kinds: Sequence[Kind] = ("svg", "png")
) -> list[Path]:
    """Every figure of the page in black on white, named by section and number: latency-1.svg. Each
    file is whole or absent.

    Raises BadRun and OSError.
    """
    runs = [read_run(path) for path in run_paths]
    table, meta = frame(runs), told(runs)
    names = marked_names(table, meta)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for section in shown(meta):
        if any(column not in table.columns for column in section.NEEDS):
            continue
        figures = (
            block
            for block in marked(section.render(table, meta), names)
            if isinstance(block, Figure | Bars)
        )
        name = re.sub(r"[^a-z0-9]+", "-", section.__name__.rpartition(".")[2])
        for number, figure in enumerate(figures, start=1):
            written += list(
                _write(figure, list(names.values()), target / f"{name}-{number}", kinds)
            )
    return written


def _write(
    figure: Figure | Bars, backends: Sequence[str], stem: Path, kinds: Sequence[Kind]
) -> Iterator[Path]:
    for kind in kinds:
        path = stem.with_suffix(f".{kind}")
        with TemporaryDirectory(prefix=".", dir=path.parent) as unfinished:
            drawn = Path(unfinished) / path.name  # of the same name: an SVG's ids are made from it
            if isinstance(figure, Bars):
                draw_bars(figure, drawn, PNG_DPI)
            else:
                draw(figure, backends, drawn, PNG_DPI)
            drawn.replace(path)
        yield path
