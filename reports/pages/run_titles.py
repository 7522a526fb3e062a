"""Names as pages show them: runs by their scenarios, never by their folders; inexact backends with
a mark (`linformer ~`, `rnn ≠`), set on finished blocks and cards, in one place.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from ...harness.files.printable import visible
from ..data.exactness import MARKS
from ..data.row_groups import OF_A_RUN, Row, by, label, told_once
from ..data.run_meta import (
    Meta,
    cpu_threads,
    device_name,
    published_text,
    question,
    scenario_name,
    shard_text,
    when_text,
)
from ..elements import Text
from ..formatting import plural
from ..quantity import Quantity

MOST_NAMED = 4  # scenarios in a title, and runs in a header


def run_titles(meta: Meta) -> dict[str, str]:
    """The shortest name that tells each run from the others, which stands in headlines and before
    every problem: its scenario, device, day, time, or the end of its id, else a number.
    """
    return {run: name or scenario_name(meta[run]) for run, name in _apart(meta, _TOLD_BY).items()}


def _apart(meta: Meta, told_by: Sequence[Callable[[Mapping[str, Any]], str]]) -> dict[str, str]:
    """By the first of these that differ; "" for a lone run."""
    if len(meta) < 2:
        return dict.fromkeys(meta, "")
    if not told_by:
        return {run: f"run {place}" for place, run in enumerate(meta, start=1)}
    groups = by(meta, lambda run: told_by[0](meta[run]))
    found = {
        run: f"{value if len(groups) > 1 else ''} {rest}".strip(" ")
        for value, some in groups.items()
        for run, rest in _apart({run: meta[run] for run in some}, told_by[1:]).items()
    }
    return {run: found[run] for run in meta}


def _device(run: Mapping[str, Any]) -> str:
    """`H200` for NVIDIA H200 (cuda), `AMD EPYC` for AMD EPYC (cpu)."""
    name = device_name(run).removesuffix(f" ({run['device']})")
    models = [word for word in name.split() if any(map(str.isdigit, word))]
    return models[0] if models and run["device"] == "cuda" else name


_TOLD_BY: Sequence[Callable[[Mapping[str, Any]], str]] = (
    scenario_name,
    _device,
    lambda run: when_text(run).rpartition(" ")[0].replace(" ", "\u00a0"),
    lambda run: when_text(run, clock=True).rpartition(" ")[2],
    lambda run: str(run["run"]).rpartition("-")[2],
)


def header(run: Mapping[str, Any], title: str) -> str:
    """`quickstart 24 Nov`."""
    name = scenario_name(run)
    return title if title.startswith(name) else f"{name} {title}"


def page_title(meta: Meta) -> str:
    """`quickstart, head_cost`; `quickstart (2 runs)`; `7 scenarios`."""
    counts = Counter(map(scenario_name, meta.values()))
    if len(counts) > MOST_NAMED:
        return f"{len(counts)} scenarios"
    several = {name: f" ({count} runs)" for name, count in counts.items() if count > 1}
    return ", ".join(f"{name}{several.get(name, '')}" for name in counts)


def questions(meta: Meta) -> list[str]:
    """Each question once."""
    return list(dict.fromkeys(filter(None, map(question, meta.values()))))


def subtitle(run: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """`AMD EPYC (cpu), 1 thread · fp32, batch 1, d_model 512 · 21 Nov 2026`; what follows N too:
    `B = 16 384 / N`.
    """
    device = device_name(run)
    if count := cpu_threads(run):
        device += f", {plural(count, 'thread')}"
    values = {axis: {row.get(axis) for row in rows} for axis in OF_A_RUN[1:]}
    same = {axis: found.pop() for axis, found in values.items() if len(found) == 1}
    equal = [
        str(value) if axis == "dtype" else f"{axis} {value}"
        for axis, value in same.items()
        if value is not None
    ]
    equal += filter(None, [label(told_once(rows))])
    part = "" if run.get("merged") else visible(shard_text(run))
    whose = published_text(run)
    return " · ".join(filter(None, (device, ", ".join(equal), when_text(run), part, whose)))


# ---- names of backends ---------------------------------------------------------------------------


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
