"""`run --shard` and `merge` as a user types them: what is missing is said, and measured later."""

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from attnbench.harness.rows.run_files import read_meta, read_rows
from tests.fakes.shard_runs import write_shard

Run = Callable[..., CompletedProcess[str]]
SMALL = """
name: small
question: Which backend needs the least memory?
backends: [naive, fused, sdpa]
grid: {seq_len: [32, 64, 128], d_model: 64, heads: [1, 2]}
contrast: [heads]
measure: [memory]
plan: quick
limits: {memory_gib: 0.5}
studies: [score_scale, parameter_count]
"""


def is_whole(run: Path) -> bool:
    meta = read_meta(run)
    planned = [one["case"] for name in ("cases", "walls", "studies") for one in meta[name]]
    return sorted(row["case"] for row in read_rows(run)) == sorted(planned)


@pytest.mark.long
def test_a_stopped_shard_and_a_merged_run_without_a_shard_are_completed_by_resume(
    attnbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "small.yaml").write_text(SMALL)
    words = ("run", "small.yaml", "--shard", "1/2", "--device", "cpu", "--quiet")
    shard = tmp_path / attnbench(*words, check=True).stdout.strip()
    rows = (shard / "rows.jsonl").read_text().splitlines(keepends=True)
    (shard / "rows.jsonl").write_text("".join(rows[:2]))
    attnbench("run", "--resume", shard, "--quiet", check=True)
    assert is_whole(shard)
    part = attnbench("merge", shard, "-o", "part")
    assert part.returncode == 1
    assert "shard 2 of 2 was not given" in part.stderr
    attnbench("run", "--resume", "part", "--quiet", check=True)
    assert is_whole(tmp_path / "part")


def test_missing_shards_are_named_and_the_exit_code_says_so(here: Run, tmp_path: Path) -> None:
    for number in (1, 3):
        write_shard(tmp_path / "results", f"{number}/3")
    names = [path.name for path in (tmp_path / "results").iterdir()]
    done = here("merge", *names)
    assert done.returncode == 1
    assert "2 of 3 shards: 12 of 20 cases have a result" in done.stderr
    assert re.search(r"missing: \S+, \S+, \S+ and 5 more", done.stderr)
    words = " ".join(done.stderr.split())
    assert "next: shard 2 of 3 was not given: give it too" in words
    assert Path(done.stdout.strip()).is_dir()
