"""The answers of a run in sentences, for the end of a run in the terminal: those of the page's summary."""

from pathlib import Path

from .blocks import Text
from .load import frame, read_run, told
from .sections import summary


def closing(run: str | Path) -> list[str]:
    """Raises BadRun."""
    read = read_run(run)
    blocks = summary.render(frame([read]), told([read]))
    return [block.text for block in blocks if isinstance(block, Text) and block.kind not in ("question", "note")]
