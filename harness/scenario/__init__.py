"""Scenarios, read from YAML files, command-line options or Python data; bad ones raise BadInput."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .changes import Change, axes_document, read_change
from .document import Document, parse_yaml, placeless, read_yaml
from .fields import Limits, Plan
from .model import Scenario
from .names import find, is_study, summaries
from .suite_file import Entry, SuiteFile, alone, entries_of, validated

__all__ = [
    "Change",
    "Entry",
    "Limits",
    "Plan",
    "Scenario",
    "SuiteFile",
    "from_axes",
    "from_mapping",
    "load",
    "load_entries",
    "read_change",
    "summaries",
]


def load(path_or_name: str | Path, changes: Sequence[Change] = ()) -> Scenario:
    """The scenario in a file, or a shipped one by name. Raises BadInput."""
    path = path_or_name if isinstance(path_or_name, Path) else find(path_or_name)
    return validated(read_yaml(path), changes)


def load_entries(
    source: str | Path | Mapping[str, Any], changes: Sequence[Change] = ()
) -> SuiteFile:
    """The entries of a suite, a YAML list, or the one scenario of another source. Raises BadInput.

    `source`: a file's path, a shipped name, a study, YAML in several lines, or the same as Python
    data.
    `changes`: of all entries, after each entry's own.
    """
    if isinstance(source, Mapping):
        document = Document(placeless(source), "scenario")
    elif isinstance(source, str) and "\n" in source:
        document = parse_yaml(source, "scenario")
    elif isinstance(source, str) and is_study(source):
        return SuiteFile(is_list=False, entries=(alone(source, changes),))
    else:
        document = read_yaml(source if isinstance(source, Path) else find(source))
    if not isinstance(document.data, list):
        return SuiteFile(is_list=False, entries=(Entry(validated(document, changes)),))
    return SuiteFile(is_list=True, entries=entries_of(document, changes))


def from_axes(
    axes: Mapping[str, Any], changes: Sequence[Change] = (), *, find_wall: bool = False
) -> Scenario:
    """A scenario from axes, and from backends, baseline, model and its fields. Raises BadInput.

    Their values are text as in a shell, {"seq_len": "512,1k"}, or as in Python, {"seq_len": [512]}.
    """
    return validated(axes_document(axes, find_wall=find_wall), changes)


def from_mapping(data: Mapping[str, Any], origin: str, changes: Sequence[Change] = ()) -> Scenario:
    """A scenario from Python data; messages begin with `origin`. Raises BadInput."""
    return validated(Document(placeless(data), origin), changes)
