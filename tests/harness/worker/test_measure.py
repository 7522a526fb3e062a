"""Timed calls are tied to the checked ones, in a worker's own process."""

import json
import sys
from dataclasses import replace
from textwrap import dedent
from typing import NamedTuple

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import launch
from attnbench.harness.measure.graph_capture import capture_stream
from attnbench.harness.measure.prepared_call import PreparedCall
from attnbench.harness.worker import measure
from attnbench.impls.problem import Problem
from tests.conftest import environment, ran
from tests.harness.worker.configs import measurer_here, worker_config

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
from attnbench.harness.cases.case import Case
from attnbench.harness.measure import launch
from attnbench.harness.machine.nvml import Device
from attnbench.harness.worker import measure
from attnbench.harness.worker.phases import WorkerConfig
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import measurer_here

def measured(suspect, beside, measure, calls):
    events = []
    config = WorkerConfig(device=torch.device("cpu"), seed=0, budget_bytes=1 << 30,
        measure=tuple(measure), warm_heap=True, first_warm_up_s=0.1, max_warm_up_s=0.5,
        watched=Device(uuid=None))
    measurer = measurer_here(config, events.append)
    problem = Problem(batch=1, seq_len=256, d_model=32, heads=2)
    cases = [Case(backend=name, problem=problem) for name in (suspect, beside)]
    measurer.check(cases)
    measurer.warm_up(cases)
    for _ in range(4):
        measurer.sample(cases, {case.id: calls for case in cases})
    measurer.confirm(cases)
    measurer.release()
    return [event for event in events if event["event"] in ("ended", "samples")]

print(json.dumps([measured(*one) for one in json.loads(sys.argv[1])]))
"""


class Tried(NamedTuple):
    """A backend that does `change` in each call, beside another one."""

    change: str
    measure: tuple[str, ...] = ("latency",)
    calls: int = 5
    beside: str = "fused"


@pytest.fixture
def events(tmp_path):
    """What a worker says of backends, one after the other: those that ended, and all samples."""

    def run(*tried: Tried | str):
        every = [one if isinstance(one, Tried) else Tried(one) for one in tried]
        asked = []
        for number, one in enumerate(every):
            name = f"suspect{number}"
            (tmp_path / f"{name}.py").write_text(BACKEND.format(change=dedent(one.change)))
            asked.append((name, one.beside, one.measure, one.calls))
        done = ran(
            [sys.executable, "-c", WORKER, json.dumps(asked)],
            env=environment({"ATTNBENCH_BACKENDS": str(tmp_path)}),
            check=True,
        )
        found = []
        for some in json.loads(done.stdout):
            ended = {
                e["case"].partition("-")[0].rstrip("0123456789"): e
                for e in some
                if e["event"] == "ended"
            }
            found.append((ended, [e for e in some if e["event"] == "samples"]))
        return found

    return run


@pytest.mark.long
def test_an_honest_backend_is_sampled_with_new_and_repeated_values(events):
    ((ended, samples),) = events("pass")
    assert ended == {}
    blocks = [e["quantities"]["conditions"] for e in samples if e["case"].startswith("suspect")]
    assert [block["new_values"] for block in blocks] == [1, 0, 1, 0]
    assert all(block["calls"] == 5 and block["first_call_ms"] > 0 for block in blocks)
    assert all(e["block_s"] >= e["spent_s"] > 0 for e in samples)


@pytest.mark.long
def test_a_write_that_nothing_counts_ends_all_who_shared_the_inputs(events):
    ((ended, _),) = events("k.numpy()[0, 0, 0, 0] *= 1.0 if gc.isenabled() else 1.0001")
    assert {name: (e["status"], e["phase"]) for name, e in ended.items()} == {
        "suspect": ("error", "latency"),
        "fused": ("error", "latency"),
    }
    assert ended["fused"]["reason"] == (
        "inputs (key) were changed while suspect0, fused were timed, by one of them"
    )


@pytest.mark.long
def test_a_cache_that_follows_new_values_is_found_by_its_times(events):
    cached = """key = float(k.sum()), float(v.sum())
            result = kept.get(key) if calls > 5 else None
            if result is None:
                for _ in range(200): result = (q @ k.mT * problem.scale).softmax(-1) @ v
                kept.clear(); kept[key] = result
            result = result.clone()"""
    ((ended, _),) = events(cached)
    assert "it answers from memory" in ended["suspect"]["reason"]
    assert set(ended) == {"suspect"}


@pytest.mark.long
def test_a_cache_that_keeps_all_results_is_found_too_and_so_is_one_of_a_half(events):
    part = """key = float(k[:, :{0}].sum()), float(v[:, :{0}].sum())
            kept[key] = kept.get(key, 0) + 1
            for _ in range({1} if kept[key] == 1 else {2}):
                result = (q @ k.mT * problem.scale).softmax(-1) @ v"""
    halves = [part.format(*one) for one in ((2, 60, 1), (1, 60, 30))]
    every = [Tried(one, beside=beside) for one in halves for beside in ("fused", "linformer")]
    for ended, _ in events(*every):
        assert "it answers from memory" in ended["suspect"]["reason"]
        assert set(ended) == {"suspect"}


LONG = "import time; time.sleep(0.31)"


@pytest.mark.long
def test_a_long_case_is_convicted_as_a_short_one_is(events):
    changes = (
        "result = kept.setdefault('first', torch.empty_like(result)).copy_(result)",
        "result = result * (1 + (calls > 4))",
        "result = kept.setdefault('first', result).clone()",
    )
    every = [
        Tried(f"{LONG}; {change}", measure, calls=1)
        for measure in (("latency", "memory"), ("latency",))
        for change in changes
    ]
    for ended, _ in events(*every):
        assert set(ended) == {"suspect"}
        assert ended["suspect"]["status"] in ("incorrect", "error")


# ---- CUDA, on a fake GPU -------------------------------------------------------------------------

CUDA = torch.device("cuda", 0)
SMALL = Problem(batch=1, seq_len=64, d_model=32, heads=2)
KERNEL_S = 0.1e-3  # of every kernel: a call is a whole number of them, however it is launched


@pytest.fixture
def slow_gpu(fake_gpu, monkeypatch):
    """On which few calls fill a warm-up, since a test's calls are computed on the CPU."""
    fake_gpu.other_s = KERNEL_S
    monkeypatch.setattr(measure, "WARM_UP_S", 0.02)
    monkeypatch.setattr(measure, "WARM_AGAIN_S", 0.02)
    monkeypatch.setattr(launch, "BLOCKS", 2)
    monkeypatch.setattr(launch, "CALLS", 3)
    return fake_gpu


def measurer_on(gpu, *, budget_bytes=1 << 30, measure=("latency", "memory")):
    """A worker on a GPU, in this process, and the events that it says."""
    events = []
    config = worker_config("cuda", budget_bytes=budget_bytes, measure=measure)
    return measurer_here(config, events.append), events


def facts_of(events, case):
    found = {}
    for event in events:
        if event["event"] == "facts" and event["case"] == case.id:
            found |= event["fields"]
    return found


def of_kind(events, kind):
    return [event for event in events if event["event"] == kind]


@pytest.mark.long
@pytest.mark.parametrize("passes", ["forward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_on_a_gpu_a_case_is_checked_measured_and_timed_by_the_device(slow_gpu, passes, scope):
    problem = replace(SMALL, passes=passes, scope=scope)
    cases = [Case(backend=name, problem=problem) for name in ("naive", "sdpa:math")]
    measurer, events = measurer_on(slow_gpu)
    measurer.check(cases)
    measurer.warm_up(cases)
    for _ in range(2):
        measurer.sample(cases, dict.fromkeys((case.id for case in cases), 4))
    measurer.confirm(cases)
    assert of_kind(events, "ended") == []
    naive = facts_of(events, cases[0])
    verdicts = of_kind(events, "verdict")
    assert all(one["error_ratio"] <= 1 for one in verdicts if one["case"] == cases[0].id)
    assert [one["check"] for one in verdicts] == [
        *("first", "wide", "first", "wide", "process", "process", "after", "after")
    ]
    assert naive["peak_source"] == "cuda requested bytes"
    assert abs(naive["peak_bytes"] - naive["predicted_peak_bytes"]) <= 64
    assert naive["workspace_bytes"] == naive["outside_bytes"] == 0
    for event in of_kind(events, "warm"):
        assert event["graph_reason"] == ""
        assert event["launch_ms"] > 0
        assert event["shortest_call_ms"] == pytest.approx(0.001)
    samples = of_kind(events, "samples")
    assert len(samples) == 4
    for event in samples:
        read = event["quantities"]
        per_call = {name: read[name] for name in read if name.endswith("block_ms")}
        assert {len(values) for values in per_call.values()} == {4}
        kernels = read["block_ms"][0] / (KERNEL_S * 1e3)
        assert kernels == pytest.approx(round(kernels))
        assert read["graph_block_ms"] == pytest.approx(read["block_ms"])
        assert read["wall_block_ms"][0] > read["block_ms"][0]
        assert read["conditions"]["late_calls"] == 0
    measurer.release()
    assert torch.cuda.memory_reserved() <= 4 << 20  # the flush and what is shared


def test_on_a_gpu_graphs_of_a_backward_pass_have_a_forward_pass_on_their_stream(
    slow_gpu, monkeypatch
):
    streams, setup = [], PreparedCall.setup

    def noted(prepared):
        streams.append(torch.cuda.current_stream())
        return setup(prepared)

    (case,) = cases = [Case(backend="naive", problem=replace(SMALL, passes="backward"))]
    monkeypatch.setattr(PreparedCall, "setup", noted)  # before it is guarded
    measurer, events = measurer_on(slow_gpu, measure=("latency", "utilization", "graphs"))
    measurer.check(cases)
    streams.clear()
    measurer.warm_up(cases)
    measurer.watch(case, ("utilization",), 0.1, "graph")
    assert of_kind(events, "ended") == []
    (warm,), (watched,) = of_kind(events, "warm"), of_kind(events, "watched")
    assert (warm["graph_reason"], watched["window"]["way"]) == ("", "graph")
    captured = capture_stream(CUDA)
    assert captured != torch.cuda.current_stream()
    assert streams == [torch.cuda.current_stream(), captured, captured]


def test_on_a_gpu_a_case_beyond_the_budget_is_oom_and_the_next_one_is_measured(slow_gpu):
    problem = Problem(batch=2, seq_len=512, d_model=32, heads=4)
    cases = [Case(backend=name, problem=problem) for name in ("fused", "sdpa")]
    measurer, events = measurer_on(slow_gpu, budget_bytes=6 << 20)
    measurer.check(cases)
    measurer.warm_up(cases[1:])
    measurer.sample(cases[1:], {cases[1].id: 2})
    ended = of_kind(events, "ended")
    assert [(one["case"], one["status"]) for one in ended] == [(cases[0].id, "oom")]
    assert "more did not fit into the budget of 6.0 MiB" in ended[0]["reason"]
    assert not ended[0]["poisoned"]
    assert len(of_kind(events, "samples")) == 1


@pytest.mark.long
def test_on_a_gpu_cases_that_fit_alone_fit_together_with_their_graphs(slow_gpu):
    """A graph holds the temporaries of its call as long as the case is warm."""
    problem = Problem(batch=2, seq_len=512, d_model=32, heads=4)
    cases = [Case(backend=name, problem=problem) for name in ("sdpa:math", "naive")]
    measurer, events = measurer_on(slow_gpu, budget_bytes=48 << 20)
    measurer.check(cases)
    assert of_kind(events, "ended") == []
    measurer.warm_up(cases)
    measurer.sample(cases, dict.fromkeys((case.id for case in cases), 2))
    assert of_kind(events, "ended") == []
    assert {event["graph_reason"] for event in of_kind(events, "warm")} == {""}
    allowed = slow_gpu.memory.fraction * slow_gpu.memory.total_bytes
    assert slow_gpu.memory.most["reserved_bytes"] > 48 << 20, "together they take more"
    measurer.release()
    assert slow_gpu.memory.fraction * slow_gpu.memory.total_bytes < 0.01 * allowed
