"""Suite files: a YAML list of scenarios, each with changes of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ..files.errors import BadInput, shown
from .changes import Change
from .check import MOST_LINES, checked, first_lines
from .document import MAX_NODES, Document, read_yaml
from .fields import Strict, one_or_list
from .model import Scenario
from .names import find

MOST_ENTRIES = 200
MOST_NODES = 3 * MAX_NODES  # of all scenarios that it lists; each entry reads its file again
EXAMPLE = "such as `- quickstart` or `- {scenario: quickstart, plan: quick}`"
Patterns = Annotated[tuple[str, ...], one_or_list(str)]


class SuiteEntry(Strict):
    """One entry of the list: a scenario, and what `attnbench run` would be told beside it."""

    scenario: str = Field(min_length=1)
    """a scenario's name, or its file, relative to this one."""
    set: dict[str, Any] = Field(default={}, max_length=64)  # the option's name
    """Fields to change by their path, as --set does."""
    only: Patterns = ()
    """As --only: one pattern or several."""
    skip: Patterns = ()
    """As --skip: one pattern or several."""
    plan: Any = None
    """As --plan, or a mapping of fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A scenario to measure, and which of its cases."""

    scenario: Scenario
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFile:
    """What a file holds. `is_list`: it is a suite, also with one entry."""

    is_list: bool
    entries: tuple[Entry, ...]


def entries_of(
    document: Document, made: Callable[[Document, Sequence[Change]], Scenario]
) -> tuple[Entry, ...]:
    """The entries of a list; `made` gives the scenario of a document with changes.

    Raises BadInput with every problem of the list and of its scenarios.
    """
    items = document.data
    if not 0 < len(items) <= MOST_ENTRIES:
        found = f"a suite of {len(items)} scenarios" if items else "an empty list"
        wanted = f"wanted 1 to {MOST_ENTRIES} scenarios, {EXAMPLE}"
        raise BadInput(f"{document.place(())}: found {found}; {wanted}")
    problems: list[str] = []
    entries: list[Entry] = []
    nodes = 0
    for number in range(len(items)):
        try:
            entry = _entry(document, number)
            changes = _changes(document, number, entry)
            own = _scenario_of(document, number, entry.scenario)
            nodes += own.nodes
            if nodes > MOST_NODES:
                problems.append(
                    f"{document.place((number,))}: the scenarios up to here hold more than"
                    f" {MOST_NODES} values together; wanted a smaller suite; make several of it"
                )
                break
            entries.append(Entry(scenario=made(own, changes), only=entry.only, skip=entry.skip))
        except BadInput as error:
            problems += error.problems
        if len(problems) > MOST_LINES:
            break
    if problems:
        raise BadInput(*first_lines(problems))
    return tuple(entries)


def _entry(document: Document, number: int) -> SuiteEntry:
    item, place = document.data[number], document.place((number,))
    if isinstance(item, str):
        item = {"scenario": item}
    if not isinstance(item, Mapping):
        raise BadInput(f"{place}: found {shown(item)}; wanted a scenario, {EXAMPLE}")
    return checked(SuiteEntry, item, document, (number,), "a suite's entry")


def _changes(document: Document, number: int, entry: SuiteEntry) -> list[Change]:
    changes = []
    for path, value in entry.set.items():
        keys = (number, "set", path)
        if not all(path.split(".")):
            place = document.place(keys, of_key=True)
            raise BadInput(
                f"{place}: {shown(path)}: not a field; wanted a path such as grid.seq_len"
            )
        changes.append(Change(path, value, document.place(keys)))
    if entry.plan is not None:
        changes.append(Change("plan", entry.plan, document.place((number, "plan"))))
    return changes


def _scenario_of(document: Document, number: int, name: str) -> Document:
    """The scenario's own document. Raises BadInput, at the entry if there is no such file."""
    place = document.place((number, "scenario"))
    try:  # a file beside the suite's, or a shipped scenario
        is_path = "/" in name or name.endswith((".yaml", ".yml"))
        path = Path(document.origin).parent / name if is_path else find(name)
    except BadInput as error:
        raise BadInput(*(f"{place}: {problem}" for problem in error.problems)) from None
    if not path.exists():
        raise BadInput(
            f"{place}: {shown(str(path))}: no such file; wanted a scenario's name, or its file"
            " relative to the suite's"
        )
    scenario = read_yaml(path)
    if isinstance(scenario.data, list):
        raise BadInput(f"{place}: {shown(name)} is a suite itself; wanted a scenario; list those")
    return scenario
