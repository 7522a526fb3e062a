"""What `attnbench merge --json` prints, as types."""

from typing_extensions import TypedDict


class MergedRun(TypedDict):
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
