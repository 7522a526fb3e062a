"""`run --shard` and `merge` as a user types them: three parts of a run are one run again."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import pytest

from attnbench.harness.rows.run_files import read_meta, read_rows
from tests.fakes.shard_runs import write_shard
from tests.harness.run.small_runs import run_in

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
HERE = ("--device", "cpu", "--quiet")
SAME = ("cases", "walls", "studies", "scenario", "environment", "seed", "memory_bytes")
TIMED = ("started_utc", "spent_s", "prepare_ms", "first_call_ms", "session", "log_tail")


class Measured(NamedTuple):
    """Three shards, and one run of all of it, by their places in `folder`."""

    folder: Path
    shards: list[str]
    whole: str


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("apart")
    (folder / "small.yaml").write_text(SMALL)

    def run(*arguments: str) -> str:
        done = run_in(folder, "small.yaml", *arguments, *HERE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    shards = [run("--shard", f"{number}/3", "--out", f"s{number}") for number in (1, 2, 3)]
    return Measured(folder, shards, run("--out", "one"))


@pytest.fixture
def shards(apart: Measured, attnbench: Run, tmp_path: Path) -> Measured:
    """A copy, in the current folder."""
    shutil.copytree(apart.folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    return apart._replace(folder=tmp_path)


def alike(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its times, without memory that the kernel counts in pages, and without what
    the judge found on rows that it drew in secret.
    """
    judged = ("judged", "error_l2_ratio", "error_ratio", "error_limit_ratio", "output_cosine")
    unequal = (*TIMED, *judged, "resident_peak_bytes", "outside_bytes", "missing")
    return {name: value for name, value in row.items() if name not in unequal}


@pytest.mark.long
def test_three_shards_measured_apart_and_merged_are_one_run_but_for_times(
    attnbench: Run, shards: Measured
) -> None:
    merged = attnbench("merge", *shards.shards, "-o", "whole")
    assert (merged.returncode, merged.stdout) == (0, "whole\n")
    assert "3 of 3 shards: 20 of 20 cases have a result" in merged.stderr
    whole, single = shards.folder / "whole", shards.folder / shards.whole
    parts = [{row["case"] for row in read_rows(shards.folder / one)} for one in shards.shards]
    assert all(parts)
    assert list(map(alike, read_rows(whole))) == sorted(
        map(alike, read_rows(single)), key=lambda row: order(single).index(row["case"])
    )
    assert [read_meta(whole)[name] for name in SAME] == [read_meta(single)[name] for name in SAME]


def order(run: Path) -> list[str]:
    meta = read_meta(run)
    return [one["case"] for name in ("cases", "walls", "studies") for one in meta[name]]


@pytest.mark.long
def test_a_merged_run_without_a_shard_is_completed_by_resume(
    attnbench: Run, shards: Measured
) -> None:
    part = attnbench("merge", *shards.shards[:2], "-o", "part")
    assert part.returncode == 1
    assert "shard 3 of 3 was not given" in part.stderr
    done = attnbench("run", "--resume", "part", "--quiet")
    assert done.returncode == 0, done.stderr
    run = shards.folder / "part"
    assert sorted(row["case"] for row in read_rows(run)) == sorted(order(run))


@pytest.mark.long
def test_a_shard_that_was_stopped_is_resumed_as_that_shard(
    attnbench: Run, shards: Measured
) -> None:
    run = shards.folder / shards.shards[0]
    rows = (run / "rows.jsonl").read_text().splitlines(keepends=True)
    (run / "rows.jsonl").write_text("".join(rows[:2]))
    assert attnbench("run", "--resume", str(run), "--quiet").returncode == 0
    assert sorted(row["case"] for row in read_rows(run)) == sorted(order(run))


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


def test_shards_that_do_not_fit_are_refused_with_exit_code_2(here: Run, tmp_path: Path) -> None:
    runs = [write_shard(tmp_path, "1/2"), write_shard(tmp_path, "2/2", seed=3)]
    done = here("merge", *runs)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "shards of different plans (seed: 0 and 3)" in done.stderr
