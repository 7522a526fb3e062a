"""The answers of a run in sentences, for the end of a run in the terminal: those of the page's
summary.
"""

from pathlib import Path

from ..data.load import frame, read_run, told
from .exactness_marks import marked, marked_names
from ..elements import Text
from ..sections import summary


def closing(run: str | Path) -> list[str]:
    """Raises BadRun."""
    read = read_run(run)
    table, meta = frame([read]), told([read])
    blocks = marked(summary.render(table, meta), marked_names(table, meta))
    return [
        block.text
        for block in blocks
        if isinstance(block, Text) and block.kind not in ("question", "note")
    ]
