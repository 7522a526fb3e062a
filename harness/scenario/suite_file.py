"""From a document to a scenario, or to those of a suite: a YAML list, with changes of its entries.

Also the scenario of a study alone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from ..files.errors import BadInput, option, shown
from ..studies import declared, takes
from .changes import Change, apply
from .check import MOST_LINES, checked, first_lines, problems_of
from .document import Document, placeless, read_yaml
from .fields import Strict, one_or_list
from .model import Scenario
from .names import find


def validated(document: Document, *changes: Sequence[Change]) -> Scenario:
    """The document as a scenario; checks each field first, then how the fields fit together.

    Later `changes` win over earlier ones. Raises BadInput with every problem that the check found.
    """
    if document.data is None:
        raise BadInput(
            f"{document.origin}: scenario is empty; wanted name, question, backends and grid; see"
            " scenarios/README.md"
        )
    if not isinstance(document.data, dict):
        raise BadInput(
            f"{document.place(())}: found {shown(document.data)}; wanted a mapping of fields, such"
            " as `name: my_scenario`"
        )
    for some in changes:
        apply(document, some)
    cases = document.data.get("cases")
    if isinstance(cases, list) and any(isinstance(one, dict) and "model" in one for one in cases):
        from .model_cases import expand_models  # of the pack of models

        expand_models(document)
    scenario = checked(Scenario, document.data, document)
    if problems := problems_of(scenario, document):
        raise BadInput(*problems)
    scenario._source = document.origin
    return scenario


# ---- lists of them -------------------------------------------------------------------------------


MOST_ENTRIES = 200
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


class Entry(NamedTuple):
    """A scenario to measure, and which of its cases."""

    scenario: Scenario
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


class SuiteFile(NamedTuple):
    """What a file holds. `is_list`: it is a suite, also with one entry."""

    is_list: bool
    entries: tuple[Entry, ...]


def entries_of(document: Document, more: Sequence[Change]) -> tuple[Entry, ...]:
    """The entries of a list. `more`: changes of all, after their own.

    Raises BadInput with every problem of the list and of its scenarios.
    """
    count = len(document.data)
    if not 0 < count <= MOST_ENTRIES:
        found = f"a suite of {count} scenarios" if count else "an empty list"
        wanted = f"wanted 1 to {MOST_ENTRIES} scenarios, {EXAMPLE}"
        raise BadInput(f"{document.place(())}: found {found}; {wanted}")
    problems: list[str] = []
    entries: list[Entry] = []
    for number in range(count):
        try:
            asked = _asked(document, number)
            own = _scenario_of(document, number, asked.scenario)
            changes = [
                Change(path, value, document.place((number, "set", path)))
                for path, value in asked.set.items()
            ]
            if asked.plan is not None:
                changes.append(Change("plan", asked.plan, document.place((number, "plan"))))
            entries.append(Entry(validated(own, changes, more), asked.only, asked.skip))
        except BadInput as error:
            problems += error.problems
        if len(problems) > MOST_LINES:
            break
    if problems:
        raise BadInput(*first_lines(problems))
    return tuple(entries)


def _asked(document: Document, number: int) -> SuiteEntry:
    item = document.data[number]
    if isinstance(item, str):
        item = {"scenario": item}
    if not isinstance(item, Mapping):
        place = document.place((number,))
        raise BadInput(f"{place}: found {shown(item)}; wanted a scenario, {EXAMPLE}")
    return checked(SuiteEntry, item, document, (number,), "a suite's entry")


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
        raise BadInput(
            f"{place}: {shown(name)} is a suite itself; wanted a scenario; list its scenarios"
        )
    return scenario


# ---- a study: by its name, or of files of the user's that it looks at ----------------------------


SHARED = ("device", "limits", "plan")
"""Fields of all scenarios beside it that are this one's too; the others ask another question."""


def alone(study: str, changes: Sequence[Change] = (), files: Sequence[str] = ()) -> Entry:
    """`study`: as scenarios spell it; one that takes `files` has their names. Raises BadInput."""
    name = study.partition(":")[0]
    asked = declared(name).question_of.format(names=", ".join(files)[:200])
    data = {
        "name": name,
        "question": asked or declared(name).question,
        "backends": ["fused"],
        "grid": {"batch": 1, "seq_len": 512, "d_model": 512, "heads": 8, "causal": True},
        "plan": "quick",
        "limits": {"timeout_s": 600},
        "studies": [] if files else [study],
    }
    origin = option(takes(name)) if files else f"study {study}"
    scenario = validated(Document(placeless(data), origin), changes)
    return Entry(scenario=scenario, only=(f"study-{name}",))


def beside(study: str, changes: Sequence[Change], files: Sequence[str]) -> Entry:
    """The entry beside others that looks at files; `changes`: of all of them."""
    own = [one for one in changes if one.path.partition(".")[0] in SHARED]
    return alone(study, own, files)
