"""The figures of a report as separate files, for papers and slides."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ...harness.files.safe_files import write_output
from ..drawing.bars import draw as draw_bars
from ..drawing.plots import draw
from ..elements import Bars, Figure
from ..sections import name_of
from .report import Report

Kind = Literal["svg", "png", "pdf"]
PNG_DPI = 200


def write_figures(
    report: Report, folder: str | Path, kinds: Sequence[Kind] = ("svg", "png")
) -> list[Path]:
    """Write every figure in black on white, named by section and number: latency-1.svg.

    Each file is whole or absent. Raises OSError.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for section in report.sections:
        blocks = report.blocks(section)
        figures = (block for block in blocks if isinstance(block, Figure | Bars))
        name = re.sub(r"[^a-z0-9]+", "-", name_of(section))
        for number, figure in enumerate(figures, start=1):
            written += _write(figure, report.backends, target / f"{name}-{number}", kinds)
    return written


def _write(
    figure: Figure | Bars, backends: Sequence[str], stem: Path, kinds: Sequence[Kind]
) -> Iterator[Path]:
    for kind in kinds:
        path = stem.with_suffix(f".{kind}")
        with TemporaryDirectory() as unfinished:
            drawn = Path(unfinished) / path.name  # same name: an SVG's ids are made from it
            if isinstance(figure, Bars):
                draw_bars(figure, drawn, PNG_DPI)
            else:
                draw(figure, backends, drawn, PNG_DPI)
            write_output(path, drawn.read_bytes())
        yield path
