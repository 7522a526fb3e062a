"""Where scenarios are: shipped ones by name, others by path."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..files.errors import BadInput, instead_of, shown
from ..studies import names as studies
from ..studies import spellings
from .document import read_yaml

FOLDER = Path(__file__).parent.parent.parent / "scenarios"


CLAIMS = "claims_"
ALL_CLAIMS = "claims"
"""In place of all scenarios whose names begin with CLAIMS."""


def shipped() -> dict[str, Path]:
    """Name to file, sorted by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def claims() -> list[str]:
    return [name for name in shipped() if name.startswith(CLAIMS)]


def expanded(names: Iterable[Any]) -> list[Any]:
    """With ALL_CLAIMS as those that it stands for."""
    return [one for name in names for one in (claims() if name == ALL_CLAIMS else [name])]


def is_study(name: str) -> bool:
    """Whether it names a study, and no scenario or file."""
    return name in spellings() and name not in shipped() and not os.path.lexists(name)


def find(path_or_name: str) -> Path:
    """The scenario's file. Raises BadInput for an unknown name.

    Text with a slash or ending in .yaml is a path, which need not exist unless it is called like a
    shipped scenario; other text is a name.
    """
    known = shipped()
    path = Path(path_or_name)
    if "/" in path_or_name or path.suffix in (".yaml", ".yml"):
        if path.stem in known and not os.path.lexists(path):
            raise BadInput(
                f"{shown(path_or_name)}: no such file; the built-in scenario is called {path.stem},"
                " without a path"
            )
        return path
    if path_or_name in known:
        path = known[path_or_name].resolve()
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    if Path(path_or_name).is_file():
        return Path(path_or_name)
    if Path(path_or_name).is_dir():
        raise BadInput(
            f"{shown(path_or_name)}: a folder; wanted a .yaml file or a built-in scenario"
        )
    files = [path_or_name + ending for ending in (".yaml", ".yml")]
    there = [f"did you mean {one}?" for one in files if Path(one).is_file()]
    hint = there[0] if there else instead_of(path_or_name, sorted({*known, *studies()}))
    raise BadInput(f"no scenario {shown(path_or_name)}; {hint} (or the path of a .yaml file)")


class Summary(NamedTuple):
    """A shipped scenario; of an unreadable file the reason as its question."""

    name: str
    path: Path
    question: str
    takes_min: float | None


def summaries() -> list[Summary]:
    """Of every shipped scenario, by name."""
    found = []
    for name, path in shipped().items():
        try:
            data = read_yaml(path).data or {}
        except BadInput as error:
            data = {"question": "; ".join(error.problems)}
        question = str(data.get("question", "")).strip()
        found.append(Summary(name, path, question, data.get("takes_min")))
    return found
