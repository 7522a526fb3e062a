"""The command line as a user meets it: what goes where, and with which exit code."""

import json
import os
import sys
from pathlib import Path

import pytest

from attnbench.impls.discovery.source import EXACTNESS
from tests.conftest import ran
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
        "import sys; from attnbench.harness.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"heavy = set({heavy!r}.split()) & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    words = arguments.replace("RUNS", str(finished_run.parent)).split()
    ran([sys.executable, "-c", code, *words], check=True)


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
