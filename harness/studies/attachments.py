"""Files of the user's that studies look at: named by an option of a pack, planned by no scenario.

Their paths are told to workers and kept in no file of a run. A study that looks at one says so with
TAKES, and defines
    tried(device, most_bytes, **request) -> problems    open an attachment, and look at nothing
where `request` is what its attachment says.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..files.errors import BadInput, option, shown
from . import takes


class Attachment(Protocol):
    """`study`: that looks at it. `flag`: as on the command line."""

    @property
    def name(self) -> str: ...
    @property
    def study(self) -> str: ...
    @property
    def flag(self) -> str: ...

    def request(self) -> dict[str, str | None]:
        """What a worker is told of it: paths on this machine, by what they are."""


def attached_to(study: str, part: Mapping[str, object]) -> str | None:
    """The name of the attachment that a part of a study looks at."""
    return str(part.get(what)) if (what := takes(study)) else None


def names_in(planned: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Of the attachments that studies in run.json look at, each with its option."""
    parts = ((str(one.get("study")), one.get("part")) for one in planned)
    named = ((study, attached_to(study, part)) for study, part in parts if isinstance(part, dict))
    return {name: takes(study) for study, name in named if name is not None}


def given_again(
    run: Path, names: Mapping[str, str], given: Collection[Attachment]
) -> tuple[Attachment, ...]:
    """Those that a run to resume still looks at; of its files only their `names` count,
    each with its option. Raises BadInput.
    """
    by_name = {one.name: one for one in given}
    if missing := [name for name in names if name not in by_name]:
        flags = " ".join(option(names[name], f"{name}=PATH") for name in missing)
        raise BadInput(
            f"{option('resume')}: {run} has not looked at {', '.join(map(shown, missing))} yet;"
            " name the"
            f" files again, because no path is taken from a run's file: {flags}"
        )
    if surplus := [one for one in given if one.name not in names]:
        raise BadInput(
            f"{surplus[0].flag}: {run} has nothing left to look at in it; leave it out, or start"
            " another run"
        )
    return tuple(by_name[name] for name in names)


def refuse_problems(problems: Sequence[str], options: Iterable[str]) -> None:
    """Raises BadInput. `options`: of the attachments that were tried."""
    if problems:
        flag = " and ".join(map(option, dict.fromkeys(options)))
        raise BadInput(*(f"{flag}: {problem}" for problem in problems))
