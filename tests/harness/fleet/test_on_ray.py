"""Runs on two Ray nodes of this machine: nothing is lost or doubled, whatever is killed."""

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.harness.fleet.conftest import QUICK, Nodes

pytestmark = pytest.mark.nightly

GRID = (
    *("--backends", "fused,sdpa,crashes", "--batch", "1", "--d-model", "32", "--heads", "2"),
    *("--device", "cpu", "--memory-gib", "0.5", "--out", "results"),
)
TIMES = {
    *("block_ms", "wall_block_ms", "conditions", "half_width_ratio", "pair_half_width_ratio"),
    *("warmup_stationary", "contended_blocks", "throttled_blocks", "started_utc", "spent_s"),
    *("session", "launch_ms", "shortest_call_ms", "device_name", "prepare_ms", "first_call_ms"),
    *("stop", "log_tail", "judged"),  # the rows that are judged are drawn in secret
    *("resident_peak_bytes", "outside_bytes"),  # pages: what ran before in the process counts
}
"""What differs from run to run: times, and what follows from them."""
SLOW = (
    *("--backends", "keeps_pace", "--batch", "1", "--d-model", "32", "--heads", "2"),
    *("--device", "cpu", "--memory-gib", "0.5", "--out", "results", *QUICK),
)


def rows_of(run: Path) -> list[dict[str, Any]]:
    if not (run / "rows.jsonl").exists():
        return []
    lines = (run / "rows.jsonl").read_bytes().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def meta_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "run.json").read_text())


def final_rows(run: Path) -> dict[str, dict[str, Any]]:
    """The row of each case that counts: each planned case has exactly one that is final."""
    rows = rows_of(run)
    finals = Counter(row["case"] for row in rows if row["status"] != "interrupted")
    assert finals == Counter(one["case"] for one in meta_of(run)["cases"])
    return {row["case"]: row for row in rows if row["status"] != "interrupted"}


def the_run(nodes: Nodes) -> Path | None:
    return next(iter(sorted((nodes.folder / "results").glob("2*"))), None)


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from run to run, and why it is missing."""
    missing = {**(row.get("memory_missing") or {})}
    why = {name: missing[name] for name in missing.keys() - TIMES}
    return {name: row[name] for name in row.keys() - TIMES - {"host"}} | {"memory_missing": why}


def test_two_nodes_give_the_rows_of_a_local_run_but_for_times(nodes: Nodes) -> None:
    lengths = ("--seq-len", "32,48,64,80,96,112")
    local = nodes.run(*GRID, *lengths, *QUICK, here=True, code=1)  # one backend crashes
    on_ray = nodes.run(*GRID, *lengths, *QUICK, "--devices", "2", "--wait", code=1)
    there, here = final_rows(on_ray), final_rows(local)
    assert there.keys() == here.keys()
    for name in here:
        assert lasting(there[name]) == lasting(here[name])
    (host,) = {row["host"] for row in here.values()}
    assert all(row["host"].startswith(f"{host} (node ") for row in there.values())
    meta, before = meta_of(on_ray), meta_of(local)
    for fact in ("threads", "allocator", "cores", "torch", "attnbench"):
        assert meta["environment"][fact] == before["environment"][fact]
    assert meta["environment"]["allocator"] == {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    assert {one["host"] for one in meta["devices"]} == {row["host"] for row in there.values()}
    assert len({row["host"] for row in there.values()}) == 2, "both measured"
    crashed = [row for row in there.values() if row["status"] == "crashed"]
    assert len(crashed) == 6
    assert all("Segmentation fault" in row["log_tail"] for row in crashed)


def test_a_node_is_killed_in_the_middle_and_the_other_one_measures_its_work(
    nodes: Nodes, until
) -> None:
    process = nodes.start(
        *SLOW, "--seq-len", "32,48,64,80,96,112", "--devices", "2", "--wait", "--json-lines"
    )
    until(lambda: (run := the_run(nodes)) and len(nodes.beside_devices()) == 2 and rows_of(run))
    nodes.do("kill")
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, nodes.said.read_text()
    others = [line for line in out.splitlines() if not line.startswith("{")]
    assert others == [], "stdout has results only"
    said = [json.loads(line).get("text", "") for line in out.splitlines()]
    (lost,) = (text for text in said if "was lost" in text)
    assert "was lost: its Ray" in lost
    run = the_run(nodes)
    assert run is not None
    assert {row["status"] for row in final_rows(run).values()} == {"ok"}
    until(lambda: not nodes.workers())


def test_what_a_silent_node_was_measuring_is_measured_by_the_other(nodes: Nodes, until) -> None:
    process = nodes.start(*SLOW, "--seq-len", "32,48,64,80,96,112", "--devices", "2", "--wait")
    until(lambda: (run := the_run(nodes)) and len(nodes.beside_devices()) == 2 and rows_of(run))
    nodes.do("silence")
    run = nodes.ended(process)
    assert "was lost: its Ray" in nodes.said.read_text()
    assert {row["status"] for row in final_rows(run).values()} == {"ok"}


def test_a_killed_driver_leaves_nothing_behind_and_its_run_goes_on_on_ray_and_then_here(
    nodes: Nodes, until
) -> None:
    process = nodes.start(*SLOW, "--seq-len", "32,48,64,80,96,112,128,144", "--wait")
    until(lambda: (run := the_run(nodes)) and rows_of(run))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not nodes.workers())
    run = the_run(nodes)
    assert run is not None
    before = len(rows_of(run))
    assert before < 8
    process = nodes.start("--resume", run.name, "--out", "results", "--wait")
    until(lambda: len(rows_of(run)) > before)
    process.send_signal(signal.SIGINT)
    nodes.ended(process, code=130)
    assert Counter(row["status"] for row in rows_of(run))["interrupted"] > 0
    until(lambda: not nodes.workers())
    nodes.run("--resume", run.name, "--out", "results", here=True)
    assert {row["status"] for row in final_rows(run).values()} == {"ok"}


def test_a_process_beside_a_device_is_killed_twice_and_takes_all_of_its_own_with_it(
    nodes: Nodes, until
) -> None:
    """The first time its work is measured again, the second time its rows say who was lost."""
    process = nodes.start(*SLOW, "--seq-len", "32,48", "--devices", "1", "--wait")
    killed: set[int] = set()
    for ready in ("writing", "is back"):
        until(lambda ready=ready: ready in nodes.said.read_text())
        until(lambda: nodes.beside_devices() - killed)
        (pid,) = nodes.beside_devices() - killed
        below = [one.pid for one in psutil.Process(pid).children(recursive=True)]
        killed.add(pid)
        psutil.Process(pid).kill()
        until(lambda below=below: not any(map(psutil.pid_exists, below)))
    run = nodes.ended(process, code=1)
    rows = final_rows(run)
    statuses = Counter(row["status"] for row in rows.values())
    assert statuses == {"crashed": 1, "ok": 1}
    (crashed,) = (row for row in rows.values() if row["status"] == "crashed")
    assert f"{crashed['host']} was lost while it was measured" in crashed["reason"]
    assert "its Ray worker process died" in crashed["reason"]
