"""`attnbench.merge`: shards by their names, as one run or one suite."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.arguments import DEFAULT_ROOT, public
from ..files.errors import BadInput
from ..store.names import find
from ..store.suites import is_suite
from .merge import merge as merge_runs
from .merge import merge_suites


@public
def merge(
    runs: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    out: str | Path = DEFAULT_ROOT,
) -> dict[str, Any]:
    """Make one run of shards that were measured apart, or one suite of those of a suite; as
    `attnbench merge --json`.

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
    paths = [find(name, out) for name in runs]
    suites = [is_suite(path) for path in paths]
    if any(suites) and not all(suites):
        raise BadInput("runs and suites; wanted shards of one run, or of one suite")
    if suites[0]:
        merged = merge_suites(paths, output, out, command)
        suite = Path(merged[0]["run"]).parent if merged else output
        return {"path": str(suite), "runs": merged}
    one = merge_runs(paths, output, out, command)
    return {"path": one["run"], "runs": [one]}
