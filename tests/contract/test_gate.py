"""`attnbench gate` of two checkouts: its verdict is its exit code."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.conftest import run_attnbench

BACKEND = """\
def attend(q, k, v, *, causal, scale):
    s = q @ k.mT * scale
    return s.softmax(-1) @ v
"""
NEEDS_MORE = BACKEND.replace("s.softmax(-1) @ v", "(s.double().softmax(-1) @ v.double()).float()")
SCENARIO = """\
name: mine
question: Did my function become slower, or larger?
backends: [attend@mine]
device: cpu
grid: {batch: 1, seq_len: 64, d_model: 16, heads: 2}
plan: {like: quick, processes: 1, min_blocks: 2, max_blocks: 2, budget_s: 0.05}
"""
Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    folder: Path
    done: Done

    def judged(self, gate: str) -> Done:
        words = ("gate", "base", "head", "--step", "judge", "--out", "out", "--gate", gate)
        return run_attnbench(*words, cwd=self.folder)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    place = tmp_path_factory.mktemp("gate")
    for side, code in (("base", BACKEND), ("head", NEEDS_MORE)):
        (place / side).mkdir()
        (place / side / "mine.py").write_text(code)
        (place / side / "gate.yaml").write_text(SCENARIO)
    words = ("--turns", 1, "--code", ".", "--allow-import", "--out", "out")
    done = run_attnbench("gate", "base", "head", *words, "--gate", "peak_bytes: 0%", cwd=place)
    return Gate(folder=place, done=done)


def test_more_bytes_than_the_margin_fail_the_gate_with_3(gate: Gate) -> None:
    assert gate.done.returncode == 3, gate.done.stderr
    assert "failed" in gate.done.stdout
    assert "attend@mine" in gate.done.stdout + (gate.folder / "out" / "summary.md").read_text()
    found = json.loads((gate.folder / "out" / "compare.json").read_text())
    assert found["gate"]["outcome"] == "failed"
    assert (gate.folder / "out" / "report.html").exists()


def test_within_the_margin_it_passes_with_0(gate: Gate) -> None:
    done = gate.judged("peak_bytes: 500%")
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout


def test_one_turn_decides_nothing_about_time_which_is_6(gate: Gate) -> None:
    done = gate.judged("latency: 5%")
    assert done.returncode == 6, done.stderr
    assert "nothing decided" in done.stdout + done.stderr
