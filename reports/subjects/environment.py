"""What the numbers depend on: machine, versions, settings, plan, and the scenario as resolved."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..data.row_groups import Row
from ..data.run_meta import Meta, budget_bytes, shard_text
from ..data.typed import typed
from ..elements import Block, Table, note
from ..formatting import bytes_text
from . import Subject

TITLE = "Environment"
SECTION = "more"
ORDER = 60
MOST_LINES = 300
WHERE = ("host", "device_name", "device_uuid")


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(blocks=tuple(_blocks(rows, meta)))


def _blocks(rows: Sequence[Row], meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        budget = budget_bytes(run)
        known = {
            "run": run["run"],
            "started (UTC)": run.get("started_utc"),
            "command": typed(run.get("command")),
            "attnbench": run.get("attnbench"),
            "device": run["device"],
            "memory budget": bytes_text(budget) if budget else None,
            "seed": run.get("seed"),
            "part of the plan": shard_text(run),
        }
        of = f" of {name}" if len(meta) > 1 else ""
        facts = [*_flat(known), *_flat(run["environment"])]
        yield _table(f"Machine, versions and settings{of}", facts)
        yield from _devices(rows, name, run, of)
        scenario = {key: value for key, value in run["scenario"].items() if key != "question"}
        yield _table(f"Scenario as resolved{of}", list(_flat(scenario)))
    if not meta:
        yield note("No run, no environment.")


def _devices(rows: Sequence[Row], name: str, run: Mapping[str, Any], of: str) -> Iterator[Block]:
    """Which device measured how many cases, of a run that was measured on several."""
    several = run.get("merged") or run.get("devices")
    mine = [row for row in rows if row["run"] == name]
    counts = Counter(tuple(row.get(column) or "" for column in WHERE) for row in mine)
    if not several or len(counts) < 2:
        return
    lines = tuple((host, str(n), *device) for (host, *device), n in sorted(counts.items()))
    yield Table(
        title=f"Which device measured what{of}",
        columns=("host", "cases", "device", "UUID"),
        rows=lines[:MOST_LINES],
    )


def _table(title: str, lines: list[tuple[str, str]]) -> Table:
    more = [(f"{len(lines) - MOST_LINES} more", "in run.json")] if len(lines) > MOST_LINES else []
    return Table(title=title, columns=("what", "value"), rows=(*lines[:MOST_LINES], *more))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif value is not None and value != "" and value != []:
            yield f"{above}{key}", _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        return ", ".join(map(_text, value))
    return str(value)
