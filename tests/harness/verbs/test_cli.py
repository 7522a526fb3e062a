"""The command line as a user meets it: what goes where, and with which exit code."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import attnbench
from attnbench.impls.discovery.source import EXACTNESS
from tests.conftest import command_line, environment, ran
from tests.made_runs import fake_run


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    return fake_run(tmp_path_factory.mktemp("run"), 1)


HEAVY = "torch pandas scipy matplotlib"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ("--help", f"{HEAVY} numpy pydantic ruamel"),
        ("--version", f"{HEAVY} numpy pydantic ruamel rich.console"),
        ("run --help", f"{HEAVY} ruamel"),
        ("list scenarios", f"{HEAVY} numpy"),
        ("list", HEAVY),
        ("list runs --out RUNS", HEAVY),
    ],
)
def test_listing_and_help_import_no_heavy_package(arguments, heavy, finished_run):
    code = (
        "import sys; from attnbench.harness.verbs.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"heavy = set({heavy!r}.split()) & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    words = arguments.replace("RUNS", str(finished_run.parent)).split()
    ran([sys.executable, "-c", code, *words], check=True)


def test_the_list_fits_one_screen_and_begins_with_what_to_begin_with(here):
    ours, theirs = pty.openpty()
    shipped = environment({"COLUMNS": "80", "ATTNBENCH_BACKENDS": ""})
    subprocess.run(command_line("list"), env=shipped, stdout=theirs, check=True)
    os.close(theirs)
    heading, *lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert "begin with" in heading
    assert any(line.startswith("quickstart ") for line in lines[:2])
    assert 1 + len(lines) < 24  # with the next prompt
    every = here("list", "--all").stdout
    assert "kernel_sweep " in every
    assert "more scenarios" not in every


def test_lists_are_frames_with_every_cell(here, finished_run):
    models, probes = attnbench.list("models"), attnbench.list("probes")
    assert [*models.columns] == ["model", "attention", "longest context"]
    assert probes["probe"].ne("").all()
    assert here("list", "probes").stdout.count("\nbusy ") == 1  # where it changes
    assert len(attnbench.list("runs", runs=finished_run.parent)) == 1
    assert attnbench.list("baselines", runs=finished_run.parent).empty
    with pytest.raises(attnbench.BadInput, match="what: found 'model'; did you mean models"):
        attnbench.list("model")
    with pytest.raises(attnbench.BadInput, match="all: runs are listed whole"):
        attnbench.list("runs", all=True)


@pytest.mark.long
def test_lists_show_what_there_is(here, finished_run):
    _, *scenarios = here("list", "scenarios").stdout.splitlines()
    assert scenarios[0].startswith("quickstart ")
    assert scenarios[-1].split("  ")[0] == "kernel_sweep"
    assert "needs a GPU" in scenarios[-1]
    backends = here("list", "backends", "--device", "cpu").stdout
    assert "keeps all heads' N² scores" in backends
    assert "_native" not in backends
    assert "torch has the cudnn kernel for CUDA only" in backends
    assert "no_such_package_for_attnbench" in backends
    results = {
        line.split()[0].rstrip(","): next(word for word in line.split() if word in EXACTNESS)
        for line in backends.splitlines()[1:]
    }
    known = {"fused": "exact", "linformer": "approximate", "rnn": "other"}
    assert results.items() >= {**known, "needs_package": "exact"}.items()
    runs = here("list", "runs", "--out", finished_run.parent).stdout
    assert finished_run.name in runs
    assert "6 ok" in runs
    meta = json.loads((finished_run / "run.json").read_text())
    assert meta["started_utc"][:16].replace("T", " ") in runs
    assert meta["scenario"]["question"] in runs
    (finished_run / ".lock").write_text(str(os.getpid()))  # as while it is written
    assert "in progress: 6 of 6" in here("list", "runs", "--out", finished_run.parent).stdout
    (finished_run / ".lock").write_text("")
