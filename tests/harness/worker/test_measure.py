"""A worker on a fake GPU: cases are checked, measured, timed and limited by the device."""

from dataclasses import replace

import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure import clock
from attnbench.harness.measure.graph_capture import capture_stream
from attnbench.harness.measure.judge import Judge, Seeds
from attnbench.harness.measure.prepared_call import PreparedCall
from attnbench.harness.process.replies import WORKER
from attnbench.harness.worker.serve import answer
from attnbench.impls.problem import Problem
from tests.harness.worker.configs import steps_on

CUDA = torch.device("cuda", 0)
SMALL = Problem(batch=1, seq_len=64, d_model=32, heads=2)
KERNEL_S = 0.1e-3  # of every kernel: a call is a whole number of them, however it is launched
WARM_UP = {"least_s": 0.02, "most_s": 0.05}


@pytest.fixture
def slow_gpu(fake_gpu, monkeypatch):
    """On which few calls fill a warm-up, since a test's calls are computed on the CPU."""
    fake_gpu.other_s = KERNEL_S
    monkeypatch.setattr(clock, "BLOCKS", 2)
    monkeypatch.setattr(clock, "CALLS", 3)
    return fake_gpu


class Asked:
    """A worker in this process, that is asked as a run asks it."""

    def __init__(self, *, budget_bytes=1 << 30, measure=("latency", "memory")):
        self.steps = steps_on("cuda", budget_bytes=budget_bytes, measure=list(measure))

    def ask(self, op, **fields):
        found = answer(self.steps, {"op": op, **fields})
        return WORKER[found["op"]].model_validate(found)

    def check(self, case):
        drawn = self.ask("draw", case=case.fields())
        return self.ask("check", case=case.id) if drawn.op == "draw" else drawn

    def warm_up(self, case):
        return self.ask("warm_up", case=case.fields(), **WARM_UP)


@pytest.mark.long
def test_on_a_gpu_a_training_step_is_checked_measured_and_timed_by_the_device(slow_gpu):
    """Forward alone: tests/contract/test_gpu_fakes.py."""
    problem = replace(SMALL, passes="forward+backward", scope="layer")
    cases = [Case(backend=name, problem=problem) for name in ("naive", "sdpa:math")]
    worker, judge = Asked(), Judge()
    naive, _ = (worker.check(case).fields for case in cases)
    assert naive["error_ratio"] <= 1
    assert naive["peak_source"] == "cuda requested bytes"
    assert naive["predicted_peak_bytes"] is None, "no formula"
    assert naive["workspace_bytes"] == naive["outside_bytes"] == 0
    for case in cases:
        warm = worker.warm_up(case)
        assert warm.graph_reason == ""
        assert warm.launch_ms > 0
        assert warm.shortest_call_ms == pytest.approx(0.001)
        assert len(set(warm.digests)) == 1
    for seed in (1, 2):
        for case in cases:
            read = worker.ask("sample", case=case.id, seed=seed, calls=4).quantities
            per_call = {n: v for n, v in read.model_dump().items() if n.endswith("block_ms")}
            assert {len(values) for values in per_call.values()} == {4}
            kernels = read.block_ms[0] / (KERNEL_S * 1e3)
            assert kernels == pytest.approx(round(kernels))
            assert read.graph_block_ms == pytest.approx(read.block_ms)
            assert read.wall_block_ms[0] > read.block_ms[0]
            assert read.conditions.late_calls == 0
            numbers = worker.ask("output", case=case.id, places_seed=seed).numbers
            assert judge.judged(problem, Seeds(seed, 0, seed), numbers).complaint == ""
    worker.ask("release")
    assert torch.cuda.memory_reserved() <= 4 << 20  # the flush and what is shared


def test_on_a_gpu_graphs_of_a_backward_pass_have_a_forward_pass_on_their_stream(
    slow_gpu, monkeypatch
):
    streams, setup = [], PreparedCall.setup

    def noted(prepared):
        streams.append(torch.cuda.current_stream())
        return setup(prepared)

    case = Case(backend="naive", problem=replace(SMALL, passes="backward"))
    monkeypatch.setattr(PreparedCall, "setup", noted)
    worker = Asked(measure=("latency", "utilization", "graphs"))
    worker.check(case)
    streams.clear()
    warm = worker.warm_up(case)
    watched = worker.ask("window", case=case.id, window_s=0.1, mode="graph")
    assert (warm.graph_reason, watched.window.way) == ("", "graph")
    captured = capture_stream(CUDA)
    assert captured != torch.cuda.current_stream()
    assert streams == [torch.cuda.current_stream(), captured, captured]


def test_on_a_gpu_a_case_beyond_the_budget_is_oom_and_the_next_one_is_measured(slow_gpu):
    problem = Problem(batch=2, seq_len=512, d_model=32, heads=4)
    fused, sdpa = (Case(backend=name, problem=problem) for name in ("fused", "sdpa"))
    worker = Asked(budget_bytes=6 << 20)
    ended = worker.check(fused)
    assert (ended.op, ended.status) == ("ended", "oom")
    assert "more did not fit into the budget of 6.0 MiB" in ended.reason
    assert worker.check(sdpa).op == "check"
    worker.warm_up(sdpa)
    assert worker.ask("sample", case=sdpa.id, seed=1, calls=2).op == "sample"


@pytest.mark.long
def test_on_a_gpu_cases_that_fit_alone_fit_together_with_their_graphs(slow_gpu):
    """A graph holds the temporaries of its call as long as the case is warm."""
    problem = Problem(batch=2, seq_len=512, d_model=32, heads=4)
    cases = [Case(backend=name, problem=problem) for name in ("sdpa:math", "naive")]
    worker = Asked(budget_bytes=48 << 20)
    assert {worker.check(case).op for case in cases} == {"check"}
    assert {worker.warm_up(case).graph_reason for case in cases} == {""}
    said = {worker.ask("sample", case=case.id, seed=1, calls=2).op for case in cases}
    assert said == {"sample"}
    allowed = slow_gpu.memory.fraction * slow_gpu.memory.total_bytes
    assert slow_gpu.memory.most["reserved_bytes"] > 48 << 20, "together they take more"
    worker.ask("release")
    assert slow_gpu.memory.fraction * slow_gpu.memory.total_bytes < 0.01 * allowed
