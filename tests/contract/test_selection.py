"""What is measured of a plan: --dry-run, --only, --set and --shard; two shards become one run."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.conftest import Attnbench, last_rows, only_run, rows, run_attnbench

SCENARIO = """\
name: parts
question: Is a plan measured as a whole by its parts?
backends: [naive, sdpa]
device: cpu
measure: [memory]
grid: {batch: 1, seq_len: [32, 64, 96], d_model: 32, heads: [1, 2]}
contrast: [heads]
plan: {like: quick, processes: 1}
limits: {memory_gib: 0.5}
"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    path = tmp_path / "parts.yaml"
    path.write_text(SCENARIO)
    return path


def test_a_dry_run_names_every_case_with_its_bytes_and_measures_nothing(
    attnbench: Attnbench, parts: Path
) -> None:
    done = attnbench("run", parts, "--dry-run", check=True)
    for backend in ("naive", "sdpa"):
        for seq_len in (32, 64, 96):
            for heads in (1, 2):
                assert f"{backend}-b1-n{seq_len}-d32-h{heads}-fp32" in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("naive-b1-n64-d32-h1-"))
    digits = "".join(line.split())  # thousands are set apart by some kind of space
    assert f"core{3 * 64 * 32 * 4}{2 * 64 * 64 * 4}" in digits, "inputs, then the peak"
    assert not list(parts.parent.glob("**/run.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    shards: tuple[Path, Path]
    whole: Path
    lacking: int


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Merged:
    place = tmp_path_factory.mktemp("shards")
    (place / "parts.yaml").write_text(SCENARIO)
    found = []
    for number in (1, 2):
        words = ("--shard", f"{number}/2", "--seed", 3, "--runs", place / str(number), "--quiet")
        run_attnbench("run", "parts.yaml", *words, cwd=place, check=True)
        found.append(only_run(place / str(number)))
    first, second = found
    lacking = run_attnbench("merge", first, "-o", place / "lacking", cwd=place)
    words = ("merge", second, first, first, "-o", place / "whole")
    run_attnbench(*words, cwd=place, check=True)
    return Merged(shards=(first, second), whole=place / "whole", lacking=lacking.returncode)


def test_shards_are_disjoint_and_never_split_what_is_compared(merged: Merged) -> None:
    parts = [last_rows(shard) for shard in merged.shards]
    assert all(parts)
    assert not set(parts[0]) & set(parts[1])
    lengths = [{row["seq_len"] for row in part.values()} for part in parts]
    assert not lengths[0] & lengths[1]
    assert lengths[0] | lengths[1] == {32, 64, 96}


def test_merging_keeps_every_row_to_the_byte_once_though_a_shard_is_given_twice(
    merged: Merged,
) -> None:
    lines = [
        line for shard in merged.shards for line in (shard / "rows.jsonl").read_bytes().splitlines()
    ]
    whole = (merged.whole / "rows.jsonl").read_bytes().splitlines()
    assert sorted(whole) == sorted(lines)
    assert len(last_rows(merged.whole)) == 12
    assert merged.lacking == 1, "of one shard alone, that cases are missing"


def test_rows_stand_in_the_order_of_the_plan(merged: Merged) -> None:
    planned = [one["case"] for one in json.loads((merged.whole / "run.json").read_text())["cases"]]
    assert [row["case"] for row in rows(merged.whole)] == planned


def test_only_and_set_select_and_change_what_is_measured(attnbench: Attnbench, parts: Path) -> None:
    change = ("--set", "grid.seq_len=[16, 24]", "--only", "*n16*", "--skip", "*h2*")
    attnbench("run", parts, *change, "--runs", "runs", "--quiet", check=True)
    found = last_rows(only_run(parts.parent / "runs")).values()
    shapes = Counter((row["backend"], row["seq_len"], row["heads"]) for row in found)
    assert shapes == {("naive", 16, 1): 1, ("sdpa", 16, 1): 1}
    assert {row["block_ms"] for row in found} == {None}, "only memory was asked for"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--shard", "12/12"), 5),
        (("--only", "no-such-case*"), 2),
        (("--device", "cuda"), 4),
    ],
)
def test_what_leaves_nothing_to_measure_has_its_exit_code_and_no_folder(
    attnbench: Attnbench, parts: Path, words: tuple[str, ...], code: int
) -> None:
    done = attnbench("run", parts, *words, "--runs", "runs", "--quiet")
    assert done.returncode == code, done.stderr
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert not list((parts.parent / "runs").glob("2*")) or code == 5
