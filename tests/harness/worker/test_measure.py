"""Timed calls are tied to the checked ones, in a worker's own process."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.conftest import environment

BACKEND = """
import gc, torch
calls = 0

def prepare(problem, inputs, weights):
    q, k, v = inputs
    kept = {{}}

    def call():
        global calls
        calls += 1
        with torch.no_grad():
            result = (q @ k.mT * problem.scale).softmax(-1) @ v
            {change}
        return result

    return call
"""
WORKER = """
import json, sys, torch
from attnbench.harness.cases import Case
from attnbench.harness.nvml import Device
from attnbench.harness.worker.measure import Measurer
from attnbench.harness.worker.phases import WorkerConfig
from attnbench.impls.problem import Problem

events = []
config = WorkerConfig(device=torch.device("cpu"), seed=0, budget_bytes=1 << 30,
    measure=("latency",), warm_heap=True, max_warm_up_s=0.5, watched=Device(uuid=None))
measurer = Measurer(config, events.append)
problem = Problem(batch=1, seq_len=256, d_model=32, heads=2)
cases = [Case(backend=name, problem=problem) for name in ("suspect", "fused")]
measurer.check(cases)
measurer.warm_up(cases)
for _ in range(4):
    measurer.sample(cases, {case.id: 5 for case in cases})
measurer.recheck(cases)
measurer.release()
print(json.dumps([event for event in events if event["event"] in ("ended", "samples")]))
"""


@pytest.fixture
def events(tmp_path):
    """What a worker says of a backend that does `change` in each call, beside fused."""

    def run(change, measure=("latency",), calls=5):
        (tmp_path / "suspect.py").write_text(BACKEND.format(change=dedent(change)))
        worker = WORKER.replace('("latency",)', str(measure)).replace(": 5 for", f": {calls} for")
        done = subprocess.run(
            [sys.executable, "-c", worker],
            env=environment({"ATTNBENCH_BACKENDS": str(tmp_path)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        ended = {e["case"].partition("-")[0]: e for e in found if e["event"] == "ended"}
        return ended, [e for e in found if e["event"] == "samples"]

    return run


def test_an_honest_backend_is_sampled_with_new_and_repeated_values(events):
    ended, samples = events("pass")
    assert ended == {}
    blocks = [e["quantities"]["conditions"] for e in samples if e["case"].startswith("suspect")]
    assert [block["new_values"] for block in blocks] == [1, 0, 1, 0]
    assert all(block["calls"] == 5 and block["first_call_ms"] > 0 for block in blocks)
    assert all(e["block_s"] >= e["spent_s"] > 0 for e in samples)


UNCOUNTED = "k.numpy()[0, 0, 0, 0] += 1e-6 if calls > {} else 0.0"


def test_a_write_that_nothing_counts_ends_all_who_shared_the_inputs(events):
    ended, _ = events("k.numpy()[0, 0, 0, 0] *= 1.0 if gc.isenabled() else 1.0001")
    assert {name: (e["status"], e["phase"]) for name, e in ended.items()} == {
        "suspect": ("error", "latency"),
        "fused": ("error", "latency"),
    }
    assert ended["fused"]["reason"] == (
        "inputs (key) were changed while suspect, fused were timed, by one of them"
    )


def test_a_write_in_the_warm_up_ends_its_author_alone(events):
    ended, samples = events(UNCOUNTED.format(60))
    assert {name: e["status"] for name, e in ended.items()} == {"suspect": "incorrect"}
    assert "writes into its inputs (key)" in ended["suspect"]["reason"]
    assert len(samples) == 4


def test_a_counted_write_between_blocks_ends_its_author_alone(events):
    ended, samples = events("k[0, 0, 0, 0] += 1e-6 if calls > 60 else 0.0")
    assert {name: e["status"] for name, e in ended.items()} == {"suspect": "incorrect"}
    assert "writes into its inputs (key)" in ended["suspect"]["reason"]
    assert sum(e["case"].startswith("fused") for e in samples) == 4


def test_a_cache_that_follows_new_values_is_found_by_its_times(events):
    cached = """key = float(k.sum()), float(v.sum())
            result = kept.get(key) if calls > 5 else None
            if result is None:
                for _ in range(200): result = (q @ k.mT * problem.scale).softmax(-1) @ v
                kept.clear(); kept[key] = result
            result = result.clone()"""
    ended, _ = events(cached)
    assert "it answers from memory" in ended["suspect"]["reason"]
    assert set(ended) == {"suspect"}


LONG = "import time; time.sleep(0.31)"
BOTH = ("latency", "memory")


@pytest.mark.long
@pytest.mark.parametrize("measure", [BOTH, ("latency",)])
@pytest.mark.parametrize(
    "change",
    [
        "result = kept.setdefault('first', torch.empty_like(result)).copy_(result)",
        "result = result * (1 + (calls > 4))",
        "result = kept.setdefault('first', result).clone()",
    ],
)
def test_a_long_case_is_convicted_as_a_short_one_is(events, measure, change):
    ended, _ = events(f"{LONG}; {change}", measure, calls=1)
    assert set(ended) == {"suspect"}
    assert ended["suspect"]["status"] in ("incorrect", "error")
