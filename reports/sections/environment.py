"""What the numbers depend on: machine, versions, settings, and the plan that was run."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ..data.run_meta import Meta, budget_bytes
from ..elements import Block, Table, Text
from ..formatting import bytes_text

TITLE = "Environment"
ORDER = 60
NEEDS = ()
ABOUT = ("cases", "kernels")
MOST_LINES = 300
ALLOCATOR_WORDS = {
    "warm_heap": (
        "warm heap: freed memory is kept while latency is measured, so that calls pay for no page"
        " faults"
    ),
    "default": (
        "default: large temporaries go back to the kernel after each call, and calls pay for their"
        " page faults"
    ),
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    for name, run in meta.items():
        budget = budget_bytes(run)
        known = {
            "run": run["run"],
            "started (UTC)": run.get("started_utc"),
            "command": (
                " ".join(map(str, command))
                if isinstance(command := run.get("command"), list)
                else command
            ),
            "attnbench": run.get("attnbench"),
            "device": run["device"],
            "memory budget": bytes_text(budget) if budget else None,
            "memory while timing": _allocator(run),
            "seed": run.get("seed"),
        }
        title = f" of {name}" if len(meta) > 1 else ""
        machines = run.get("environments") or []
        if machines:
            yield _table(f"Run{title}", list(_flat(known)))
        else:
            yield _table(
                f"Machine, versions and settings{title}",
                [*_flat(known), *_flat(run["environment"])],
            )
        for one in machines:
            facts = [("interpreter", one["path"]), *_flat(one["environment"])]
            yield _table(f"Machine, versions and settings in {one['name']}{title}", facts)
        scenario = {key: value for key, value in run["scenario"].items() if key != "question"}
        yield _table(f"Scenario as resolved{title}", list(_flat(scenario)))
    if not meta:
        yield Text(text="No run, no environment.", kind="note")


def _allocator(run: Mapping[str, Any]) -> str | None:
    """How the C heap was set, in words; None on a GPU, where it does not matter, and in runs that
    do not say.
    """
    plan = run["scenario"].get("plan")
    mode = plan.get("allocator") if isinstance(plan, dict) and run["device"] == "cpu" else None
    return ALLOCATOR_WORDS.get(mode) if isinstance(mode, str) else None


def _table(title: str, lines: list[tuple[str, str]]) -> Table:
    more = [(f"{len(lines) - MOST_LINES} more", "in run.json")] if len(lines) > MOST_LINES else []
    return Table(title=title, columns=("what", "value"), rows=(*lines[:MOST_LINES], *more))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif value is not None and value != "" and value != []:
            yield f"{above}{key}", _said(value)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return (
            ", ".join(map(_said, value))
            if all(not isinstance(one, dict | list) for one in value)
            else str(value)
        )
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
