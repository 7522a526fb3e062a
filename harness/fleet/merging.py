"""`attnbench.merge`: shards by their names, as one run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.arguments import DEFAULT_ROOT, public
from ..files.errors import BadInput
from ..rows.names import find
from .merge import merge as merge_runs


@public
def merge(
    runs: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    out: str | Path = DEFAULT_ROOT,
) -> dict[str, Any]:
    """Make one run of shards that were measured apart, as `attnbench merge --json`.

    `runs`: folders, or names under `out`. `output`: the folder to write; if not given, one under
    `out`. Returns `path`, for `attnbench.open_run`, and what became of each run, `missing` cases
    among it. Raises BadInput.
    """
    target = None if output is None else Path(output)
    return merge_named([*map(str, runs)], target, Path(out), ["attnbench.merge()"])


def merge_named(
    runs: Sequence[str], output: Path | None, out: Path, command: Sequence[str]
) -> dict[str, Any]:
    """What was made. Raises BadInput."""
    if not runs:
        raise BadInput("runs: none; wanted the folders of shards")
    one = merge_runs([find(name, out) for name in runs], output, out, command)
    return {"path": one["run"], "runs": [one]}
