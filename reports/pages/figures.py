"""The pictures of a report as separate files, for papers and slides."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from ...harness.files.safe_files import write_whole
from ..drawing.picture import save
from ..elements import Drawable
from ..subjects import name_of
from .report import Report

KINDS = ("svg", "png")
PNG_DPI = 200


def write_figures(report: Report, folder: Path) -> list[Path]:
    """Write every picture in black on white, named by section and number: latency-1.svg.

    Each file is whole or absent. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for section in report.subjects:
        card = next((one for one in report.cards if one.name == name_of(section)), None)
        blocks = (*([card.picture] if card else []), *report.part(section).blocks)
        pictures = [block for block in blocks if isinstance(block, get_args(Drawable))]
        name = re.sub(r"[^a-z0-9]+", "-", name_of(section))
        for number, picture in enumerate(pictures, start=1):
            written += _write(picture, report.backends, folder / f"{name}-{number}")
    return written


def _write(picture: Drawable, backends: Sequence[str], stem: Path) -> Iterator[Path]:
    for kind in KINDS:
        path = stem.with_suffix(f".{kind}")
        with TemporaryDirectory() as unfinished:
            drawn = Path(unfinished) / path.name
            save(picture, backends, drawn, PNG_DPI)
            write_whole(path, drawn.read_bytes())
        yield path
