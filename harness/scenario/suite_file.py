"""Suite files: a YAML list of scenarios, each with changes of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ..errors import BadInput, shown
from .changes import Change
from .document import Document
from .fields import Strict, one_or_list
from .messages import lines
from .model import Scenario
from .names import find
from .yaml_text import read_yaml

MOST_ENTRIES = 200
EXAMPLE = "such as `- quickstart` or `- {scenario: quickstart, plan: quick}`"
Patterns = Annotated[tuple[str, ...], one_or_list(str)]


class SuiteEntry(Strict):
    """One entry of the list: a scenario, and what `attnbench run` would be told beside it."""

    scenario: str = Field(
        min_length=1, description="a scenario's name, or its file, relative to this one."
    )
    set: dict[str, Any] = Field(  # the option's name
        default={}, description="Fields to change by their path, as --set does."
    )
    only: Patterns = Field(default=(), description="As --only: one pattern or several.")
    skip: Patterns = Field(default=(), description="As --skip: one pattern or several.")
    plan: Any = Field(default=None, description="As --plan, or a mapping of fields.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """An entry as it is written, with the document of its scenario."""

    document: Document
    changes: tuple[Change, ...]
    only: tuple[str, ...]
    skip: tuple[str, ...]


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


def listed_entries(document: Document) -> Iterator[ListedEntry]:
    """The entries of a list. Raises BadInput with every problem that the list itself has."""
    items = document.data
    if not 0 < len(items) <= MOST_ENTRIES:
        found = f"a suite of {len(items)} scenarios" if items else "an empty list"
        wanted = f"wanted 1 to {MOST_ENTRIES} scenarios, {EXAMPLE}"
        raise BadInput(f"{document.place(())}: found {found}; {wanted}")
    problems: list[str] = []
    found_entries: list[ListedEntry] = []
    for number in range(len(items)):
        try:
            found_entries.append(_entry(document, number))
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(*problems)
    yield from found_entries


def _entry(document: Document, number: int) -> ListedEntry:
    item, place = document.data[number], document.place((number,))
    if isinstance(item, str):
        item = {"scenario": item}
    if not isinstance(item, Mapping):
        raise BadInput(f"{place}: found {shown(item)}; wanted a scenario, {EXAMPLE}")
    try:
        entry = SuiteEntry.model_validate(item)
    except ValidationError as error:
        moved = [{**one, "loc": (number, *one["loc"])} for one in error.errors(include_url=False)]
        raise BadInput(*lines(moved, document, SuiteEntry, "a suite's entry")) from None
    changes = [_change(document, number, path) for path in entry.set]
    if entry.plan is not None:
        changes.append(_change_at(document, (number, "plan"), "plan", entry.plan))
    return ListedEntry(
        document=_scenario_of(document, number, entry.scenario),
        changes=tuple(changes),
        only=entry.only,
        skip=entry.skip,
    )


def _scenario_of(document: Document, number: int, name: str) -> Document:
    """The scenario's own document. Raises BadInput, at the entry if there is no such file."""
    place = document.place((number, "scenario"))
    try:
        path = _path(name, Path(document.origin).parent)
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


def _path(name: str, folder: Path) -> Path:
    """A file beside the suite's, or a shipped scenario. Raises BadInput for an unknown name."""
    beside = folder / name
    return beside if "/" in name or name.endswith((".yaml", ".yml")) else find(name)


def _change(document: Document, number: int, path: str) -> Change:
    keys = (number, "set", path)
    if not all(path.split(".")):
        place = document.place(keys, of_key=True)
        raise BadInput(f"{place}: {shown(path)}: not a field; wanted a path such as grid.seq_len")
    return _change_at(document, keys, path, document.data[number]["set"][path])


def _change_at(document: Document, keys: tuple[str | int, ...], path: str, value: Any) -> Change:
    """With the place of every value in it, so that a mistake is named where it stands."""
    inner = {
        known[len(keys) :]: where
        for known, where in document.values.items()
        if known[: len(keys)] == keys and len(known) > len(keys)
    }
    return Change(path=path, value=_copied(value), place=document.place(keys), inner=inner)


def _copied(value: Any) -> Any:
    """Aliases of YAML share what they name; a scenario's own lists and mappings may be changed."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
