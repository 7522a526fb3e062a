"""Runs on Ray nodes of this machine that are busy, dead, join or are started: who measures."""

import re
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.harness.fleet.conftest import Nodes, below
from tests.harness.fleet.test_on_ray import SLOW, final_rows, meta_of, rows_of, the_run

pytestmark = pytest.mark.nightly

LENGTHS = ("--seq-len", ",".join(str(32 + 16 * number) for number in range(24)))
MANY = ("--seq-len", ",".join(str(32 + 8 * number) for number in range(96)))
"""So many that a node has started before they are measured, on a busy machine too."""
MODULE = """from my_helpers import scaled


def attend(q, k, v, *, causal, scale):
    return scaled(q, k, v, scale)
"""
HELPERS = "def scaled(q, k, v, scale):\n    return (q @ k.mT * scale).softmax(-1) @ v\n"
IN_FOLDER = '''"""A file of the user's."""


def prepare(problem, inputs, weights):
    from attnbench.impls.layer import as_call

    def attend(q, k, v):
        return (q @ k.mT * problem.scale).softmax(-1) @ v

    return as_call(problem, inputs, weights, attend)
'''


def hosts_of(run: Path) -> set[str]:
    return {row["host"] for row in final_rows(run).values()}


def statuses_of(run: Path) -> set[str]:
    return {row["status"] for row in final_rows(run).values()}


@pytest.mark.parametrize("nodes", [("3",)], indirect=True)
def test_dead_and_busy_nodes_are_left_out_and_used_when_they_are_back(nodes: Nodes, until) -> None:
    nodes.do("kill")  # the third
    nodes.do("hold")  # the second
    process = nodes.start(*SLOW, *MANY, "--wait")
    until(lambda: (run := the_run(nodes)) and rows_of(run))
    said = nodes.said.read_text()
    assert "left out: " in said
    assert "does other work hold its CPUs or GPU? `ray status` shows it; it is used" in said
    nodes.do("release")
    until(lambda: "joined; devices now: 2" in nodes.said.read_text())
    nodes.do("add")
    until(lambda: "joined; devices now: 3" in nodes.said.read_text())
    run = nodes.ended(process)
    assert statuses_of(run) == {"ok"}
    assert len(hosts_of(run)) == 3, "nodes of one host name are told apart"
    assert {one["host"] for one in meta_of(run)["devices"]} == hosts_of(run)


def test_too_few_devices_and_unlike_ones_end_the_command_with_one_line(nodes: Nodes) -> None:
    nodes.do("hold")
    process = nodes.start(*SLOW, *LENGTHS, "--devices", "2", "--quiet")
    process.communicate(timeout=400)
    assert process.returncode == 4
    (line,) = nodes.said.read_text().splitlines()
    assert "--devices 2: 1 of the cluster's devices can be used (" in line
    assert line.endswith("ask for fewer, or wait for them with --wait")
    nodes.do("release")
    nodes.do("unlike")
    process = nodes.start(*SLOW, *LENGTHS, "--devices", "3", "--quiet")
    process.communicate(timeout=400)
    assert process.returncode == 4
    (line,) = nodes.said.read_text().splitlines()
    assert re.search(r"\S+ \(node \w+\) has cores \d, \S+ \(node \w+\) \d; a run measures", line)
    assert the_run(nodes) is None


@pytest.mark.parametrize("nodes", [("1", "2")], indirect=True)
def test_an_autoscaler_starts_the_nodes_that_a_run_lacks(nodes: Nodes) -> None:
    run = nodes.run(*SLOW, *LENGTHS, "--devices", "3", "--wait")
    assert "asked the cluster for 2 more" in nodes.said.read_text()
    assert statuses_of(run) == {"ok"}
    assert len(hosts_of(run)) == 3


def test_files_of_own_backends_are_sent(nodes: Nodes) -> None:
    own = nodes.folder / "mine"
    own.mkdir()
    (own / "from_my_folder.py").write_text(IN_FOLDER)
    (nodes.folder / "my_module.py").write_text(MODULE)
    (nodes.folder / "my_helpers.py").write_text(HELPERS)
    nodes.env["ATTNBENCH_BACKENDS"] = str(own)
    options = ("--seq-len", "32,48,64", "--batch", "1", "--d-model", "32", "--heads", "2")
    backends = ("--backends", "from_my_folder,my_module:attend", "--plan", "quick")
    run = nodes.run(*backends, *options, "--device", "cpu", "--out", "results", "--wait")
    assert statuses_of(run) == {"ok"}
    counted = Counter(row["backend"] for row in final_rows(run).values())
    assert counted == {"from_my_folder": 3, "attend@my_module": 3}


@pytest.mark.parametrize("nodes", [("1",)], indirect=True)
def test_a_cluster_of_the_run_itself_ends_with_it(nodes: Nodes, until) -> None:
    nodes.address, nodes.env["ATTNBENCH_RUN"] = "local", "local"

    def of_the_run() -> list[psutil.Process]:
        return [one for one in below(nodes.folder) if one.environ().get("ATTNBENCH_RUN")]

    process = nodes.start(*SLOW, "--seq-len", "32,48", "--wait")
    until(lambda: any("raylet" in one.name() for one in of_the_run()))
    assert statuses_of(nodes.ended(process)) == {"ok"}
    until(lambda: not of_the_run(), 30)
