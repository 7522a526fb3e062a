"""Shards are a partition of the plan, and merging them is its inverse."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attnbench.harness.files.errors import NothingSelected
from attnbench.harness.fleet.merge import merge
from tests.fakes.shard_runs import scenario, write_shard
from tests.made_runs import read_rows

WHERE = {"host": "node", "device_name": "AMD EPYC"}
LENGTHS = st.lists(st.sampled_from([16, 32, 64, 128]), min_size=1, max_size=4, unique=True)


def read(run: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """What was planned, and the rows."""
    meta = json.loads((run / "run.json").read_text())
    planned = [one["case"] for name in ("cases", "walls", "studies") for one in meta[name]]
    return planned, read_rows(run)


@settings(max_examples=6, derandomize=True, deadline=None)
@given(lengths=LENGTHS, count=st.integers(2, 5), failed=st.booleans())
def test_merged_shards_are_the_run_that_was_split(
    lengths: list[int], count: int, failed: bool
) -> None:
    grid = {"seq_len": lengths, "d_model": 64, "heads": [1, 2]}
    of = scenario(grid=grid, find_wall=True, studies=["score_scale"])
    with TemporaryDirectory() as folder:
        root = Path(folder)
        whole = write_shard(root / "whole", None, of=of, device=WHERE)
        planned, rows = read(whole)
        ended = {planned[0]: "crashed"} if failed else {}
        if ended:
            _, rows = read(write_shard(root / "again", None, of=of, device=WHERE, ended=ended))
        shards = []
        for number in range(1, count + 1):
            try:
                shard = f"{number}/{count}"
                shards.append(write_shard(root, shard, of=of, device=WHERE, ended=ended))
            except NothingSelected:  # fewer groups than shards
                assert number > 1
        parts = [case for shard in shards for case in read(shard)[0]]
        assert sorted(parts) == sorted(planned)
        found = merge(shards, root / "merged", root, ["attnbench", "merge"])
        assert read(Path(found["run"])) == (planned, rows)
        assert (found["of"], found["missing"], found["absent_shards"]) == (count, [], [])
