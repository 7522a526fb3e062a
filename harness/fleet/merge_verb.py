"""`attnbench merge`: shards that were measured apart, as one run."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..cli.options import DEFAULT_ROOT, Root, argument, option
from ..verbs import completion

MOST_NAMED = 3


def merge(
    runs: Annotated[
        list[str],
        argument(
            "RUN...",
            "Folders of shards, or their names under --runs.",
            completion.runs,
        ),
    ],
    output: Annotated[
        Path | None,
        option("--output -o RUN", "Folder of the merged run; if not given, one under --runs."),
    ] = None,
    out: Root = DEFAULT_ROOT,
    as_json: Annotated[bool, option("--json", "As JSON on stdout.")] = False,
) -> None:
    """Make one run of shards that were measured apart.

    Prints its folder. Exit code 1 if cases are missing, and says which.
    """
    from .merging import merge_named

    found = merge_named(runs, output, out, ["attnbench", *sys.argv[1:]])
    if as_json:
        typer.echo(json.dumps(found))
    else:
        typer.echo(found["path"])
        for one in found["runs"]:
            _say(one)
    raise typer.Exit(1 if any(one["missing"] for one in found["runs"]) else 0)


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
