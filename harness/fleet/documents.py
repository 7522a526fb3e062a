"""What `attnbench merge --json` prints, as types."""

from typing_extensions import TypedDict


class MergedRun(TypedDict):
    """`shards`: the numbers of those in it, of `of`; `absent_shards`: of those that were not given;
    `planned`: how many cases, walls and studies; `missing`: those without a result; `changed`:
    whether anything was written.
    """

    run: str
    shards: list[int]
    of: int
    planned: int
    absent_shards: list[int]
    missing: list[str]
    changed: bool
    notes: list[str]


class MergedRuns(TypedDict):
    """`path`: of the run, or of the suite that `runs` are in."""

    path: str
    runs: list[MergedRun]
