"""The command line as a user meets it: what goes where, and with which exit code."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from attnbench.impls.discovery.source import EXACTNESS
from tests.conftest import command_line, ran
from tests.made_runs import read_rows

SMALL = shlex.split("--batch 1 --seq-len 64 --d-model 32 --heads 2 --device cpu --plan quick")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    """A small run with two backends and two head counts."""
    folder = tmp_path_factory.mktemp("run")
    flags = (
        "--backends naive,fused --batch 1 --seq-len 64,128 --d-model 32 --heads 1,2 --device cpu"
    )
    plan = "plan={processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}"
    done = ran(command_line("run", *flags.split(), "--set", plan), cwd=folder, check=True)
    assert done.stdout.count("\n") == 1
    return folder / done.stdout.strip()


@pytest.mark.long
def test_run_prints_its_folder_on_stdout_and_everything_else_on_stderr(attnbench, tmp_path):
    done = attnbench("run", "--backends", "fused,sdpa", *SMALL, check=True)
    (line,) = done.stdout.splitlines()
    assert (tmp_path / line / "rows.jsonl").exists()
    assert "2 cases" in done.stderr
    assert "fused-b1-n64-d32-h2-fp32-forward-core" in done.stderr
    assert "2 ok" in done.stderr
    assert f"the page: attnbench show {line} --open" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.long
def test_json_progress_is_one_object_per_line(attnbench):
    done = attnbench("run", "--backends", "sdpa", *SMALL, "--json")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert messages[0]["reason"] == "begin"
    assert messages[-1]["reason"] == "end"
    assert messages[-1]["statuses"] == {"ok": 1}
    assert [
        message["row"]["status"] for message in messages if message["reason"] == "finished"
    ] == ["ok"]


def test_predicted_bytes_are_the_measured_ones(finished_run):
    for row in read_rows(finished_run):
        assert abs(row["peak_bytes"] - row["predicted_peak_bytes"]) <= 16, row["case"]


def test_dry_run_shows_predicted_bytes_and_writes_nothing(here, tmp_path):
    done = here("run", "--backends", "fused,sdpa:cudnn", *SMALL, "--dry-run", check=True)
    lines = done.stdout.splitlines()
    (fused,) = [line for line in lines if line.startswith("fused-")]
    assert "65\u202f536" in fused  # 2 * 2 * 64 * 64 * 4 bytes
    (cudnn,) = [line for line in lines if line.startswith("sdpa:cudnn-")]
    assert "unsupported" in cudnn
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_a_shard_has_its_cases_only(here):
    shards = [
        here("run", "quickstart", "--device", "cpu", "--dry-run", "--shard", f"{n}/2").stdout
        for n in (1, 2)
    ]
    cases = [
        {word for word in shard.split() if word.startswith(("naive-", "fused-", "sdpa-"))}
        for shard in shards
    ]
    assert not cases[0] & cases[1]
    assert len(cases[0] | cases[1]) == 36
    assert all(f"Shard {n}/2: " in shard for n, shard in enumerate(shards, start=1))


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
    assert "8 ok" in runs
    meta = json.loads((finished_run / "run.json").read_text())
    assert meta["started_utc"][:16].replace("T", " ") in runs
    assert meta["scenario"]["question"] in runs
    (finished_run / ".lock").write_text(str(os.getpid()))  # as while it is written
    assert "in progress: 8 of 8" in here("list", "runs", "--out", finished_run.parent).stdout
    (finished_run / ".lock").write_text("")


@pytest.mark.long
def test_load_gives_a_tidy_frame_and_importing_the_package_is_light(finished_run):
    code = (
        "import sys, attnbench\n"
        "assert not {'torch', 'pandas', 'pydantic'} & set(sys.modules)\n"
        f"frame = attnbench.load({str(finished_run)!r})\n"
        "assert len(frame) == 8 and frame.latency_ms.gt(0).all()\n"
        "assert 'torch' not in sys.modules"
    )
    ran([sys.executable, "-c", code], check=True)
