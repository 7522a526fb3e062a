"""Several processes make a file of one name at once: one wins, or all of them are whole."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

import pytest

from attnbench.harness.devices import calibration_file
from attnbench.harness.files.errors import BadInput, Refusal
from attnbench.harness.files.safe_files import write_output
from attnbench.harness.fleet.merge import merge
from attnbench.harness.rows import names
from attnbench.harness.rows.run_files import read_meta, read_rows
from tests.fakes.shard_runs import write_shard
from tests.made_runs import fake_run

AT_ONCE, ROUNDS = 8, 30
LONG = "x" * 300_000
FORK = get_context("fork")
STARTED = FORK.Barrier(AT_ONCE)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(AT_ONCE, mp_context=FORK) as workers:
        yield workers


def raced(pool: ProcessPoolExecutor, attempt: Callable[[int], str]) -> Counter[str]:
    """What became of AT_ONCE attempts that start together."""
    return Counter(pool.map(partial(tried, attempt), range(AT_ONCE)))


def tried(attempt: Callable[[int], str], number: int) -> str:
    try:
        STARTED.wait(60)
        return attempt(number)
    except BadInput as error:
        return f"refused: {error}"
    except (Refusal, BrokenBarrierError) as error:
        return f"{type(error).__name__}: {error}"


def save(run: Path, name: str, number: int) -> str:
    names.save(name, run, run.parent, force=False)
    return "won"


def test_one_of_several_saves_a_baseline_and_the_others_are_refused(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    run = fake_run(tmp_path / "results", 1)
    for number in range(ROUNDS):
        found = raced(pool, partial(save, run, f"b{number}"))
        taken = f"refused: b{number}: already a baseline; replace it with --force, or choose"
        assert found.pop("won") == 1
        assert all(words.startswith(taken) for words in found), found
    assert len(names.saved(run.parent)) == ROUNDS
    assert {path.suffix for path in (run.parent / "baselines").iterdir()} == {".json"}


def replaced(runs: list[Path], number: int) -> str:
    run = runs[number % len(runs)]
    names.save("main", run, run.parent, force=True)
    return "saved"


def test_of_several_that_replace_a_baseline_one_is_there_whole(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    runs = [fake_run(tmp_path / "results", number) for number in (1, 2)]
    for _ in range(ROUNDS):
        assert raced(pool, partial(replaced, runs)) == {"saved": AT_ONCE}
        assert names.find("main", tmp_path / "results") in runs
    assert len(list((tmp_path / "results" / "baselines").iterdir())) == 1


def merged(shard: Path, target: Path, number: int) -> str:
    return "made" if merge([shard], target, target.parent, ["attnbench"])["changed"] else "there"


def test_one_of_several_merges_makes_the_run_and_the_others_find_it_whole(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    shard = write_shard(tmp_path / "shards", "1/1")
    rows = read_meta(shard)["cases"]
    for number in range(ROUNDS):
        target = tmp_path / "merged" / f"m{number}"
        found = raced(pool, partial(merged, shard, target))
        assert found == {"made": 1, "there": AT_ONCE - 1}
        assert len(list(read_rows(target))) == len(rows)
        assert read_meta(target)["merged"]
    assert len(list((tmp_path / "merged").iterdir())) == ROUNDS + 1  # and `latest`


def written(path: Path, number: int) -> str:
    write_output(path, f"{number}{LONG}")
    return "written"


def test_of_several_outputs_to_one_place_one_is_there_whole(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        path = tmp_path / f"page{number}.html"
        assert raced(pool, partial(written, path)) == {"written": AT_ONCE}
        assert path.read_text() in {f"{number}{LONG}" for number in range(AT_ONCE)}
    assert len(list(tmp_path.iterdir())) == ROUNDS


def appended(root: Path, number: int) -> str:
    calibration_file.append_line(root / calibration_file.FILE, {"number": number, "long": LONG})
    return "appended"


def test_every_one_of_several_calibrations_is_a_whole_line(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    for _ in range(ROUNDS):
        assert raced(pool, partial(appended, tmp_path)) == {"appended": AT_ONCE}
    lines: list[Any] = [
        json.loads(line) for line in (tmp_path / calibration_file.FILE).read_text().splitlines()
    ]
    assert Counter(line["number"] for line in lines) == dict.fromkeys(range(AT_ONCE), ROUNDS)
