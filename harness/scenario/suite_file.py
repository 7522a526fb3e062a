"""Suite files: a YAML list of scenarios, each with changes of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from ..files.errors import BadInput, shown
from .changes import Change
from .document import Document, Keys
from .fields import Strict, one_or_list
from .messages import MOST_LINES, first_lines, lines
from .model import Scenario
from .names import find
from .yaml_text import MAX_NODES, read_yaml

MOST_ENTRIES = 200
MOST_NODES = 3 * MAX_NODES  # of all scenarios that it lists; each entry reads its file again
EXAMPLE = "such as `- quickstart` or `- {scenario: quickstart, plan: quick}`"
Patterns = Annotated[tuple[str, ...], one_or_list(str)]


class SuiteEntry(Strict):
    """One entry of the list: a scenario, and what `attnbench run` would be told beside it."""

    scenario: str = Field(
        min_length=1, description="a scenario's name, or its file, relative to this one."
    )
    set: dict[str, Any] = Field(  # the option's name
        default={}, max_length=64, description="Fields to change by their path, as --set does."
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
    nodes = 0
    for number in range(len(items)):
        try:
            found_entries.append(_entry(document, number))
        except BadInput as error:
            problems += error.problems
        else:
            nodes += found_entries[-1].document.nodes
        if nodes > MOST_NODES:
            place = document.place((number,))
            problems.append(
                f"{place}: the scenarios up to here hold more than {MOST_NODES} values together;"
                " wanted a smaller suite; make several of it"
            )
            break
        if len(problems) > MOST_LINES:
            break
    if problems:
        raise BadInput(*first_lines(problems))
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
        below: document.values[(*keys, *below)]
        for below in _keys_below(value)
        if (*keys, *below) in document.values  # what an alias stands for has its places elsewhere
    }
    return Change(path=path, value=_copied(value), place=document.place(keys), inner=inner)


def _keys_below(value: Any) -> Iterator[Keys]:
    """The keys of every value in `value`."""
    items = value.items() if isinstance(value, Mapping) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield (key,)
        yield from ((key, *below) for below in _keys_below(inner))


def _copied(value: Any) -> Any:
    """Aliases of YAML share what they name; a scenario's own lists and mappings may be changed."""
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
