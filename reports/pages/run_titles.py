"""What a page calls its runs: by their scenarios, never by the names of folders."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...harness.files.printable import visible
from ..data.row_groups import Row
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
from ..formatting import plural

MOST_NAMED = 4  # scenarios in a title, and runs in a header
EQUAL = ("dtype", "batch", "d_model")  # named in the header if all cases have one value


def run_titles(meta: Meta) -> dict[str, str]:
    """The title of each run: its scenario; of several with one scenario the day, with the time if
    need be, else a number. It stands in headlines and before every problem.
    """
    names = {run: scenario_name(of) for run, of in meta.items()}
    several = len(set(names.values())) > 1
    days = {run: when_text(of).rpartition(" ")[0] for run, of in meta.items()}
    days = {run: day.replace(" ", "\u00a0") for run, day in days.items()}
    times = {run: when_text(of, clock=True) for run, of in meta.items()}
    numbers = {run: f"run {place}" for place, run in enumerate(meta, start=1)}
    titles = names
    for when in (days, times, numbers):
        if len(set(titles.values())) < len(meta):
            titles = {run: f"{names[run]} {at}" if several else at for run, at in when.items()}
    return titles


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
    """`AMD EPYC (cpu), 1 thread · fp32, batch 1, d_model 512 · 21 Nov 2026`."""
    device = device_name(run)
    if count := cpu_threads(run):
        device += f", {plural(count, 'thread')}"
    values = {axis: {row.get(axis) for row in rows} for axis in EQUAL}
    same = {axis: found.pop() for axis, found in values.items() if len(found) == 1}
    equal = [
        str(value) if axis == "dtype" else f"{axis} {value}"
        for axis, value in same.items()
        if value is not None
    ]
    part = "" if run.get("merged") else visible(shard_text(run))
    whose = published_text(run)
    return " · ".join(filter(None, (device, ", ".join(equal), when_text(run), part, whose)))
