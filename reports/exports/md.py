"""One Markdown table, short enough for a comment on GitHub (`report --format md` has more)."""

from collections.abc import Sequence
from itertools import accumulate

from ..data.read import Run
from ..formatting import markdown_cell, plural
from ..subjects.rows import readable
from . import Exported
from ._tidy import tidy

MEANING = "a table in Markdown, for a comment on GitHub"
MOST_CHARACTERS = 60_000  # GitHub refuses comments of more than 65 536


def export(runs: Sequence[Run]) -> Exported:
    _, rows = tidy(runs)
    same, names, cells = readable(rows)
    equal = f"Equal in all rows: {markdown_cell(', '.join(same))}.\n\n" if same else ""
    head = [_line(names), _line(["---"] * len(names), escape=False)] if names else []
    lines = [_line(row) for row in cells]
    room = MOST_CHARACTERS - len(equal) - sum(map(len, head))
    fitting = sum(size <= room for size in accumulate(len(line) + 1 for line in lines))
    left_out = (
        f"{plural(len(lines) - fitting, 'more row')} left out: a comment on GitHub holds no more;"
        " csv and json have all"
    )
    more = f"\n_{left_out}._\n" if fitting < len(lines) else ""
    return Exported(
        content=equal + "\n".join([*head, *lines[:fitting]]) + "\n" + more,
        notes=(left_out,) if more else (),
    )


def _line(cells: Sequence[str], *, escape: bool = True) -> str:
    return "| " + " | ".join(map(markdown_cell, cells) if escape else cells) + " |"
