"""Names as pages show them: inexact backends with a mark (`linformer ~`, `rnn ≠`), runs by title.

They are set on finished blocks and cards, in one place, so that no subject can forget them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ..data.exactness import MARKS
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..elements import Text
from ..quantity import Quantity

Shown = TypeVar("Shown")
FIELDS = (
    *("title", "subtitle", "caption", "description", "about", "text", "sentence", "note", "sure"),
    *("decisions", "picture", "table", "columns", "rows", "cell", "panels", "series", "lines"),
    *("backend", "group", "label"),
)
"""What people read of blocks and cards, and what holds it."""


def marked_names(rows: Sequence[Row], meta: Meta) -> dict[str, str]:
    """Every backend of the rows and of the walls, in order, with the name to show."""
    marks: dict[str, str] = {}
    walls = (wall for run in meta.values() for wall in run.get("walls", ()))
    for one in (*rows, *walls):
        name = one["backend"]
        marks[name] = marks.get(name) or MARKS.get(one.get("exactness"), "")
    return {name: f"{name} {mark}" if mark else name for name, mark in marks.items()}


def pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds these names in a text, but not within a longer name, a path or the id of a case."""
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w:/.-])(?:{longest_first})(?!:?[\w-])")


def marked(shown: Shown, names: Mapping[str, str]) -> Shown:
    """A text, a block or a card, or a tuple of them, with `names` as they are shown.

    Logs are not changed.
    """
    changed = {name: text for name, text in names.items() if text != name}
    if not changed:
        return shown
    pattern = pattern_of(changed)
    return cast(
        Shown, _marked(shown, lambda text: pattern.sub(lambda found: changed[found.group()], text))
    )


def _marked(shown: Any, mark: Callable[[str], str]) -> Any:
    if type(shown) is str:
        return mark(shown)
    if isinstance(shown, tuple):
        return tuple(_marked(one, mark) for one in shown)
    if not is_dataclass(shown) or isinstance(shown, Quantity | type):
        return shown
    if isinstance(shown, Text) and shown.kind == "log":
        return shown
    names = {field.name for field in fields(shown)} & set(FIELDS)
    return replace(shown, **{name: _marked(getattr(shown, name), mark) for name in names})
