"""Run folders that something else has broken: every reader says so in a line, or leaves it out."""

import json
import shutil
from pathlib import Path

from attnbench.reports.exports import names
from tests.fakes.shard_runs import write_shard

from ..in_process import call, enter, without_workers
from ..mutations import break_folder
from ..trial import Trial

TITLE = "broken run folders: read, exported, merged, resumed"
COUNT = 1500
SHORT = 20
GOOD, BROKEN = "20261121T000000Z-good-00000001", "20261121T000001Z-broken-00000002"


def attempt(trial: Trial) -> None:
    good, broken = trial.results / GOOD, trial.results / BROKEN
    for run in (good, broken):
        shutil.copytree(trial.finished, run)
    if trial.random.random() < 0.3:  # so that a resume has something to do
        lines = (broken / "rows.jsonl").read_bytes().splitlines(keepends=True)
        (broken / "rows.jsonl").write_bytes(b"".join(lines[:-1]))
    trial.outcome.what = break_folder(trial.random, broken, trial.folder / "elsewhere")
    enter(trial)
    without_workers(json.loads((good / "run.json").read_bytes())["environment"])
    read(trial, good, broken)
    merge(trial)
    before = lines_of(broken)
    call(trial, "run", "--resume", broken, allowed=(0, 1, 2, 4))
    trial.outcome.expect(lines_of(broken)[: len(before)] == before, "--resume: rows were changed")
    victim = (trial.folder / "elsewhere" / "victim.txt").read_text(encoding="utf-8")
    trial.outcome.expect(victim == "one line\nand a torn one", "a file elsewhere was changed")
    trial.outcome.lost += trial.outcome.wrong.count("--resume: rows were changed")


def read(trial: Trial, good: Path, broken: Path) -> None:
    listed = call(trial, "list", "runs", "--out", trial.results, allowed=(0,))
    trial.outcome.expect(GOOD.encode() in listed, "list runs hides the good run")
    allowed = (0, 2, 4, 5)
    hidden = trial.random.choice(((), ("--anonymous",)))
    salvaged = trial.random.choice(((), ("--salvage",)))
    heavy = (
        ("show", broken, "--all", *salvaged, *hidden),
        ("show", broken, "-o", trial.folder / "page.html", *salvaged, *hidden),
        ("show", broken, good, "--format", "md"),
        ("compare", good, broken, "--format", trial.random.choice(("table", "md", "json"))),
        ("compare", broken, "--against", "fused"),
    )
    exports = [("show", broken, "--format", form, *salvaged, *hidden) for form in names()]
    for words in (*trial.random.sample(exports, 2), *trial.random.sample(heavy, 2)):
        into = ("-o", trial.folder / "exported") if words in exports else ()
        call(trial, *words, *into, allowed=allowed)


def merge(trial: Trial) -> None:
    """Two shards, one of which is broken."""
    whole, broken = (write_shard(trial.folder / "shards", f"{number}/2") for number in (1, 2))
    broken_how = break_folder(trial.random, broken, trial.folder / "elsewhere")
    trial.outcome.what += f"; of a shard: {broken_how}"
    call(trial, "merge", whole, broken, "-o", trial.folder / "merged", allowed=(0, 1, 2, 4))


def lines_of(run: Path) -> list[bytes]:
    path = run / "rows.jsonl"
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 28:
        return []
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
