"""Two environments of one machine measured in turns, as a user meets it: real venvs, which share
our packages and have one of their own.
"""

import signal
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from attnbench.reports.comparison.compare import compare_environments
from attnbench.reports.data import load
from attnbench.reports.data.read import read_run
from attnbench.reports.data.run_meta import run_meta
from tests.harness.run.small_runs import by_backend, run_in, start_and_wait_for_rows
from tests.made_runs import read_rows

pytestmark = pytest.mark.long

QUICK = (
    "--set",
    "plan={processes: 1, min_blocks: 4, max_blocks: 4, budget_s: 1}",
    "--device",
    "cpu",
)
GRID = ("--batch", "1", "--seq-len", "64", "--d-model", "32", "--heads", "2")
SOON_S, LATE_S = 0.004, 0.04


def made(folder: Path, pace_s: float | str | None = SOON_S, *paths: Path) -> Path:
    """The interpreter of a fresh venv that sees the packages of this one. `pace_s`: what its own
    package says; "" leaves it out.
    """
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    ours = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in (*ours, *paths)))
    if pace_s != "":
        (site / "attnbench_test_pace.py").write_text(f"SLEEP_S = {pace_s}\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def venvs(tmp_path_factory):
    """Interpreters by name: two that differ in the pace of a backend, one in which it crashes, and
    one that lacks its package.
    """
    folder = tmp_path_factory.mktemp("venvs")
    paces = {"soon": SOON_S, "late": LATE_S, "crash": None, "bare": ""}
    return {name: made(folder / name, pace_s) for name, pace_s in paces.items()}


def pythons(venvs, **names):
    """Flags, by the name in the run: the name of the venv."""
    return [
        word for name, which in names.items() for word in ("--python", f"{name}={venvs[which]}")
    ]


def folder_of(done: subprocess.CompletedProcess[str], tmp_path: Path) -> Path:
    (line,) = done.stdout.splitlines()
    return tmp_path / line


def rows_of(run: Path) -> dict[str, dict]:
    """The last row of every case; every planned case has one, and none is doubled."""
    by_backend(run)
    return {row["case"]: row for row in read_rows(run)}


@pytest.fixture(scope="module")
def slowed(venvs, tmp_path_factory):
    """A finished run: one backend at two paces, another one at the same, and what the terminal said
    of it.
    """
    folder = tmp_path_factory.mktemp("slowed")
    several = "plan={processes: 3, min_blocks: 2, max_blocks: 2, budget_s: 1}"
    flags = ("--set", several, "--device", "cpu", *pythons(venvs, old="soon", new="late"))
    done = run_in(folder, "--backends", "keeps_pace,sdpa", *GRID, *flags)
    assert done.returncode == 0, done.stderr
    return folder_of(done, folder), done.stderr


def between(run: Path):
    read = [read_run(run)]
    (found,) = compare_environments(load.rows_of(read), run_meta(read))
    return found


# ---- what is measured ----------------------------------------------------------------------------


def test_an_upgrade_that_slows_a_backend_is_found_with_an_interval(slowed):
    found = between(slowed[0])
    (slow,) = [
        one
        for one in found.verdicts
        if one.metric == "latency" and one.shown.backend == "keeps_pace"
    ]
    assert (found.base.name, found.new.name, slow.paired) == ("old", "new", True)
    assert slow.verdict == "slower"
    assert 1 < slow.low < slow.ratio < slow.high
    assert "new against old: slower in 1, keeps_pace at N = 64 ×" in slowed[1].replace("\xa0", " ")


def test_a_crash_in_one_environment_is_one_row_and_the_other_goes_on(attnbench, venvs, tmp_path):
    flags = (*GRID, *QUICK, *pythons(venvs, old="soon", new="crash"))
    done = attnbench("run", "--backends", "keeps_pace,sdpa", *flags)
    run = folder_of(done, tmp_path)
    rows = rows_of(run)
    assert {name.partition("-")[0] + name[-4:]: row["status"] for name, row in rows.items()} == {
        "keeps_pace-old": "ok",
        "keeps_pace-new": "crashed",
        "sdpa-old": "ok",
        "sdpa-new": "ok",
    }
    assert done.returncode == 1
    assert "Broken: keeps_pace" in done.stderr
    gated = attnbench("compare", f"{run}@old", f"{run}@new", "--gate", "latency: 900000%")
    assert gated.returncode == 3
    assert "Broken: keeps_pace" in gated.stdout


# ---- ends before the end -------------------------------------------------------------------------


def test_an_interrupted_run_is_finished_by_resume_with_each_case_once(venvs, tmp_path, attnbench):
    flags = [*pythons(venvs, old="soon", new="late"), "--set", "grid.seq_len=[32,64]"]
    args = ("--backends", "keeps_pace", *GRID, *QUICK, *flags)
    process, run = start_and_wait_for_rows(tmp_path, args, rows=1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    before = rows_of(run)
    assert len(before) == 4
    assert "interrupted" in {row["status"] for row in before.values()}
    attnbench("run", "--resume", run, *pythons(venvs, new="late", old="soon"), check=True)
    after = rows_of(run)
    assert {row["status"] for row in after.values()} == {"ok"}
    assert {name: row["attempt"] for name, row in after.items()} == {
        name: 1 if row["status"] == "ok" else 2 for name, row in before.items()
    }


# ---- refusals ------------------------------------------------------------------------------------
