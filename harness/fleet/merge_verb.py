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
    """Folder of the merged run (default: a new one under --runs)."""
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
    one = merge(found, request.output, request.runs, command)
    return {"path": one["run"], "runs": [one]}


def tell(request: MergeRequest) -> int:
    """Join shards that were measured apart into one run.

    Prints its folder. Exit code 1: cases are missing; they are listed.
    """
    found = merged(request, ["attnbench", *sys.argv[1:]])
    if request.json:
        typer.echo(json.dumps(found))
    else:
        typer.echo(found["path"])
        for one in found["runs"]:
            _say(one)
    return 1 if any(one["missing"] for one in found["runs"]) else 0


def _say(one: dict[str, Any]) -> None:
    from ..terminal.progress import say

    missing, planned, of = one["missing"], one["planned"], one["of"]
    done, unchanged = planned - len(missing), "" if one["changed"] else "; nothing new"
    have = f"{len(one['shards'])} of {of} shards"
    say(f"{have}: {done} of {planned} cases have a result{unchanged}", stderr=True)
    for note in one["notes"]:
        say(f"note: {note}", stderr=True)
    if missing:
        some, more = ", ".join(missing[:MOST_NAMED]), len(missing) - MOST_NAMED
        say(f"missing: {some}{f' and {more} more' if more > 0 else ''}", stderr=True)
        absent = ", ".join(map(str, one["absent_shards"]))
        again = f"shard {absent} of {of} was not given: give it too" if absent else ""
        here = f"measure them here with attnbench run --resume {shlex.quote(one['run'])}"
        say(f"next: {', or '.join(filter(None, (again, here)))}", stderr=True)


def merge(request: MergeRequest) -> dict[str, Any]:
    """Make one run of shards that were measured apart. Returns `path`, for `attnbench.open_run`,
    and what became of each run, `missing` cases among it. Raises BadInput.
    """
    return merged(request, ["attnbench.merge()"])


VERBS = {
    "merge": Verb(
        tell=tell,
        answer=merge,
        examples=("attnbench merge shard-1 shard-2 shard-3", "attnbench merge shards/*/* -o whole"),
    )
}
