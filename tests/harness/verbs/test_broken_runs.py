"""Broken and absurd run folders: one line each, the good ones are still listed, nothing hangs."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from attnbench.harness.files.errors import BadInput, EnvironmentUnmet
from attnbench.harness.run import start
from attnbench.harness.run.listener import Listener
from tests.faults.mutations import break_folder
from tests.made_runs import quickstart

MOST = 40  # of each seed; more are a sweep of their own


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quickstart(tmp_path_factory.mktemp("good"), (128, 512))


def kinds_of_broken(root: Path, good: Path) -> dict[str, Path]:
    """One folder for each way in which a file can be no file of a run."""
    found = {}
    for number, (name, file) in enumerate(
        (name, file)
        for file in ("run.json", "rows.jsonl")
        for name in ("pipe", "link", "loop", "folder", "absent", "empty", "cut", "list", "newer")
    ):
        folder = root / f"20260101T{number:06}Z-{name}-{number:08x}"
        shutil.copytree(good, folder)
        path = folder / file
        text = path.read_text()
        path.unlink()
        if name == "pipe":
            os.mkfifo(path)
        elif name in ("link", "loop"):
            path.symlink_to(good / file if name == "link" else file)
        elif name == "folder":
            path.mkdir()
        elif name != "absent":
            newer = text.replace('"schema": 1', '"schema": 9')
            contents = {"empty": "", "cut": text[1:], "list": "[1]\n" + text, "newer": newer}
            path.write_text(contents[name])
        found[f"{file} {name}"] = folder
    return found


READ = {"rows.jsonl absent", "rows.jsonl empty"}  # a run that was stopped before its first case


def test_every_broken_run_is_a_line_of_the_list_and_good_ones_stay(
    here, tmp_path: Path, good: Path
) -> None:
    root = tmp_path / "results"
    shutil.copytree(good, root / good.name)
    broken = kinds_of_broken(root, good)
    done = here("list", "runs", "--out", root, env={"COLUMNS": "300"}, check=True)
    lines = {line.split()[0]: line for line in done.stdout.splitlines()[1:] if line.strip()}
    assert "measured" in lines[good.name] or "ok" in lines[good.name]
    for name, folder in broken.items():
        assert ("broken: " in lines[folder.name]) == (name not in READ), name
    assert here("list", "--out", root).returncode == 0


class NothingStarts:
    """An engine without devices."""

    @contextmanager
    def open(self, *_: object) -> Iterator[Any]:
        raise EnvironmentUnmet("nothing is started in this test")
        yield


@pytest.mark.parametrize("seed", [1, 2])
def test_resuming_a_broken_run_is_one_line_before_anything_starts(
    seed: int, tmp_path: Path, good: Path
) -> None:
    options = start.RunOptions(
        command=[], listener=Listener(), allow_import=True, engine=NothingStarts()
    )
    refused, random = 0, Random(seed)
    for number in range(MOST):
        folder = tmp_path / f"20260101T{number:06}Z-broken-{number:08x}"
        shutil.copytree(good, folder)
        done = break_folder(random, folder, tmp_path / "elsewhere")
        before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
        with pytest.raises((BadInput, EnvironmentUnmet)) as error:
            start.resume_run(folder, options)
        assert "\n" not in str(error.value), done
        assert {path: path.lstat().st_mtime_ns for path in folder.rglob("*")} == before, done
        refused += isinstance(error.value, BadInput)
    assert refused > MOST / 4


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("show", "--format", "md"),
        ("show", "--format", "csv"),
        ("compare", "--baseline", "fused"),
    ],
)
def test_salvage_reads_the_good_rows_and_says_which_it_left_out(
    words: tuple[str, ...], here, tmp_path: Path, good: Path
) -> None:
    run = tmp_path / good.name
    shutil.copytree(good, run)
    lines = (run / "rows.jsonl").read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), "peak_bytes": 1.5})
    lines[3] = "{"
    (run / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    verb, *rest = words
    refused = here(verb, run, *rest)
    assert refused.returncode == 2
    assert "rows.jsonl:2: peak_bytes: found 1.5, wanted" in refused.stderr
    assert refused.stderr.rstrip().endswith("read the others with --salvage")
    done = here(verb, run, *rest, "--salvage", check=True)
    said = " ".join((done.stdout + done.stderr).split())
    assert "line 2 of rows.jsonl was left out: peak_bytes: found 1.5, wanted" in said
    assert "line 4 of rows.jsonl was left out: not valid JSON" in said
