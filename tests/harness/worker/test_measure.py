"""A worker on a fake GPU: cases are checked, measured, timed and limited by the device."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import launch
from attnbench.harness.measure.graph_capture import capture_stream
from attnbench.harness.measure.prepared_call import PreparedCall
from attnbench.harness.worker import measure
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import measurer_here, worker_config

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
    if (scope, passes) == ("layer", "forward+backward"):
        assert naive["predicted_peak_bytes"] is None, "no formula"
    else:
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
