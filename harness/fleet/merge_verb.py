"""`attnbench merge`: shards that were measured apart, as one run."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..files.errors import BadInput, option
from ..verbs import completion
from ..verbs.fields import DEFAULT_ROOT, AsJson, Runs, listed
from ..verbs.request import Option, Verb

MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    run: Annotated[
        tuple[str | Path, ...],
        Option(
            "RUN",
            complete=completion.runs,
            parse=listed,
            wanted="the folders of shards",
            argument=True,
        ),
    ]
    """Folders of shards, or their names under --runs."""
    output: Annotated[Path | None, Option("RUN", short="-o")] = None
    """Folder of the merged run; if not given, one under --runs."""
    runs: Runs = DEFAULT_ROOT
    json: AsJson = False

    def __post_init__(self) -> None:
        if not self.run:
            raise BadInput(f"{option('RUN')}: none; wanted the folders of shards")


def merged(request: MergeRequest, command: Sequence[str]) -> dict[str, Any]:
    """What was made. Raises BadInput."""
    from ..rows.names import find
    from .merge import merge

    found = [find(str(name), request.runs) for name in request.run]
    return merge(found, request.output, request.runs, command)


def tell(request: MergeRequest) -> int:
    """Make one run of shards that were measured apart.

    Prints its folder. Exit code 1 if cases are missing, and says which.
    """
    made = merged(request, ["attnbench", *sys.argv[1:]])
    typer.echo(json.dumps(made) if request.json else made["path"])
    if not request.json:
        _say(made)
    return 1 if made["missing"] else 0


def _say(made: dict[str, Any]) -> None:
    from ..terminal.progress import say

    missing, planned, of = made["missing"], made["planned"], made["of"]
    done, unchanged = planned - len(missing), "" if made["changed"] else "; nothing new"
    have = f"{len(made['shards'])} of {of} shards"
    lines = [f"{have}: {done} of {planned} cases have a result{unchanged}"]
    lines += [f"note: {note}" for note in made["notes"]]
    if missing:
        some, more = ", ".join(missing[:MOST_NAMED]), len(missing) - MOST_NAMED
        lines += [f"missing: {some}{f' and {more} more' if more > 0 else ''}"]
        absent = ", ".join(map(str, made["absent_shards"]))
        again = f"shard {absent} of {of} was not given: give it too, or " if absent else ""
        resume = f"attnbench run --resume {shlex.quote(made['path'])}"
        lines += [f"next: {again}measure them here with {resume}"]
    for line in lines:
        say(line, stderr=True)


def merge(request: MergeRequest) -> dict[str, Any]:
    """Make one run of shards that were measured apart. Returns its `path`, for
    `attnbench.open_run`, and what is in it: `shards`, and `missing` cases. Raises BadInput.
    """
    return merged(request, ["attnbench.merge()"])


VERBS = {
    "merge": Verb(
        tell=tell,
        answer=merge,
        examples=("attnbench merge shard-1 shard-2 shard-3", "attnbench merge shards/*/* -o whole"),
    )
}
