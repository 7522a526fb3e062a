"""The figures of a report as separate files, for papers and slides."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, cast

from ...harness.files.safe_files import write_output
from ..drawing.bars import draw as draw_bars
from ..drawing.plots import draw
from ..elements import Bars, Block, Figure, Panel, Picture, Series, WallChart, WallLine
from ..subjects import name_of
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
    for section in report.subjects:
        card = next((one for one in report.cards if one.name == name_of(section)), None)
        pictures = [card.picture] if card else []
        blocks = (as_figure(block) for block in (*pictures, *report.part(section).blocks))
        figures = (block for block in blocks if isinstance(block, Figure | Bars))
        name = re.sub(r"[^a-z0-9]+", "-", name_of(section))
        for number, figure in enumerate(figures, start=1):
            written += _write(figure, report.backends, target / f"{name}-{number}", kinds)
    return written


def as_figure(block: Block | Picture | None) -> Block | Picture | None:
    """A chart of the wall as a figure, whose axes say as much on paper; others as they are."""
    if not isinstance(block, WallChart):
        return block
    line = (block.budget_bytes, "budget") if block.budget_bytes else None
    panels = tuple(
        Panel(
            title=title,
            x_label="sequence length N (1k = 1024)",
            y_label="memory needed: inputs and peak",
            unit="bytes",
            series=tuple(one for wall in lines for one in _series(wall)),
            line=line,
        )
        for title, lines in block.panels
    )
    return Figure(title=block.title, caption=block.caption, panels=panels, table=block.table)


def _series(line: WallLine) -> Iterator[Series]:
    """By formula, as measured, and out of memory; a point there without bytes is at the edge."""
    ends = {"measured": ("ok",), "failed": ("oom", "predicted_oom"), "formula": ("formula",)}
    for kind, which in ends.items():
        points = [point for point in line.points if point.end in which]
        if points:
            yield Series(
                backend=line.backend,
                kind=cast(Literal["measured", "failed", "formula"], kind),
                x=tuple(point.seq_len for point in points),
                y=tuple(point.need_bytes for point in points),
            )


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
