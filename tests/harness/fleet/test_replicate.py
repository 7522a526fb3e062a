"""`run --replicate` as a user types it: every case on two devices, or twice on one."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from attnbench.harness.rows.run_files import read_rows
from attnbench.harness.scenario import from_mapping
from tests.fakes.shard_runs import write_shard

Run = Callable[..., CompletedProcess[str]]
SMALL = """
name: small
question: Which backend is fastest?
backends: [fused, sdpa]
grid: {seq_len: [32, 64, 128], d_model: 64, heads: 2}
plan: {processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.1}
limits: {memory_gib: 0.5}
studies: [parameter_count]
"""
HERE = ("--device", "cpu", "--quiet")


@pytest.fixture
def small(tmp_path: Path) -> str:
    (tmp_path / "small.yaml").write_text(SMALL)
    return "small.yaml"


@pytest.mark.long
def test_on_one_device_every_case_is_measured_twice_and_called_repeated(
    attnbench: Run, small: str, tmp_path: Path
) -> None:
    done = attnbench("run", small, "--replicate", "2", *HERE)
    assert done.returncode == 0, done.stderr
    run = tmp_path / done.stdout.strip()
    rows = {row["case"]: row for row in read_rows(run) if row["kind"] == "latency"}
    assert len(rows) == 12
    first = {case for case, row in rows.items() if row["replica"] == 1}
    assert {f"{case}-replica2" for case in first} == rows.keys() - first
    assert all(row["session"] for row in rows.values())
    assert len({row["session"] for row in rows.values()}) == 6
    assert sum(row["kind"] == "study" for row in read_rows(run)) == 1
    shown = attnbench("show", str(run), "--sections", "devices").stdout
    assert "how much devices differ is not known" in " ".join(shown.split())
    assert "spread" not in shown


def test_shards_on_two_hosts_are_merged_and_their_spread_is_in_the_report(
    attnbench: Run, tmp_path: Path
) -> None:
    of = from_mapping(
        {
            "name": "small",
            "question": "Which is fastest?",
            "backends": ["fused", "naive"],
            "grid": {"seq_len": [64, 128, 256, 512], "d_model": 64, "heads": [1, 2]},
            "contrast": ["heads"],
            "plan": "quick",
            "limits": {"memory_gib": 0.5},
        },
        "test",
    )
    runs = [
        write_shard(
            tmp_path / "apart",
            f"{n}/2",
            of=of,
            copies=2,
            device={"host": f"node{n}", "block_ms": [[[ms]] * 6] * 5, "processes": 5},
        )
        for n, ms in ((1, 1.0), (2, 1.1))
    ]
    merged = attnbench("merge", *map(str, runs), "-o", "whole")
    assert merged.returncode == 0, merged.stderr
    assert "2 of 2 shards: 32 of 32 cases have a result" in merged.stderr
    by_case: dict[tuple[str, ...], set[str]] = {}
    for row in read_rows(tmp_path / "whole"):
        by_case.setdefault((row["case"].removesuffix("-replica2"),), set()).add(row["host"])
    assert all(hosts == {"node1", "node2"} for hosts in by_case.values())
    shown = " ".join(attnbench("show", "whole", "--sections", "devices").stdout.split())
    assert "Device-to-device spread: 10.0 % (10.0 to 10.0 %)" in shown
    assert "node2 takes 1.100 times" in shown
    alone = attnbench("show", str(runs[0]), "--sections", "devices").stdout
    assert "merge the shards to compare devices" in " ".join(alone.split())


def test_a_resumed_run_keeps_its_copies_and_takes_no_others(attnbench: Run) -> None:
    done = attnbench("run", "--resume", "latest", "--replicate", "2")
    assert done.returncode == 2
    assert "--replicate" in done.stderr
