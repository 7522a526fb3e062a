"""The judge: it alone knows the exact result and the rows, and it tells the run what it finds."""

import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from attnbench.harness.cases.case import Case
from attnbench.harness.measure.input_values import InputValues
from attnbench.harness.measure.prepared_call import prepare_call
from attnbench.harness.process.events import JUDGE
from attnbench.harness.run.first_worker import start_worker
from attnbench.harness.worker.judge import Judge
from attnbench.harness.worker.judge_client import JudgeClient, NotJudged
from attnbench.impls import load
from attnbench.impls.problem import Problem
from tests.conftest import ran
from tests.harness.worker.configs import asking, worker_config

CPU = torch.device("cpu")
SMALL = Problem(batch=2, seq_len=300, d_model=32, heads=2)
TRAINING = replace(SMALL, passes="forward+backward")


class Asked:
    """A judge in this process, a client, and a backend's call on the inputs that the judge has."""

    def __init__(self, problem: Problem, backend: str = "sdpa") -> None:
        self.told: list[dict] = []
        self.judge = Judge(self.told.append)
        self.client = JudgeClient(asking(self.judge), worker_config())
        self.case = Case(backend=backend, problem=problem)
        self.values = InputValues(problem, CPU, 0)
        tensors, gradient = self.values.tensors, self.values.gradient
        self.call = prepare_call(problem, load(backend), tensors, gradient)

    def exact(self, check: str) -> int:
        return self.client.exact_result(self.case.problem, "heads", check)

    def results(self, check: str) -> list[torch.Tensor]:
        problem, gradient = self.case.problem, self.values.gradient

        def write() -> None:
            self.client.write_gradient(problem, check, gradient)

        with self.call.in_force():
            output, gradients = self.call.result(write)
        return [output, *gradients]

    def complaint(self, check: str, results, exactness: str = "exact") -> str:
        return self.client.complaint(self.case, exactness, check, results)


@pytest.mark.parametrize("problem", [SMALL, TRAINING])
def test_right_results_pass_every_check_and_the_run_hears_it(problem):
    asked = Asked(problem)
    asked.exact("first")
    assert asked.complaint("first", asked.results("first")) == ""
    asked.values.widen()
    wide = asked.results("wide")
    assert asked.complaint("wide", wide[1:] if problem.backward else wide) == ""
    asked.values.restore()
    asked.exact("process")
    asked.values.flip_inputs()
    assert asked.complaint("process", asked.results("process")) == ""
    asked.values.flip_inputs()
    asked.values.draw(asked.exact("after"))
    assert asked.complaint("after", asked.results("after")) == ""
    assert [one["check"] for one in asked.told] == ["first", "wide", "process", "after"]
    assert all(one["error_ratio"] <= one["error_limit_ratio"] for one in asked.told)
    assert len({one["rows_seed"] for one in asked.told}) == 4
    assert {one["values_seed"] for one in asked.told[:3]} == {0}
    assert asked.told[3]["values_seed"] > 0
    for one in asked.told:
        JUDGE(one)


def test_rows_cannot_be_foreseen_and_the_gradient_that_shows_them_is_zero_elsewhere():
    gradients = []
    for _ in range(2):
        asked = Asked(TRAINING)
        asked.exact("process")
        asked.client.write_gradient(TRAINING, "process", asked.values.gradient)
        gradients.append(asked.values.gradient.clone())
    rows = [one.any(-1).any(0).any(0) for one in gradients]
    assert not torch.equal(*rows)
    assert all(0 < int(one.sum()) < SMALL.seq_len for one in rows)


@pytest.mark.parametrize("check", ["first", "process", "after"])
def test_what_is_wrong_is_told_to_the_run_too(check):
    asked = Asked(SMALL)
    asked.exact(check)  # but the worker's inputs are those of the first check
    results = [asked.results(check)[0] * (1.0 if check != "first" else 1.01)]
    complaint = asked.complaint(check, results)
    assert "times as far from the exact result" in complaint
    (verdict,) = asked.told
    assert (verdict["complaint"], verdict["check"]) == (complaint, check)
    assert verdict["error_ratio"] > verdict["error_limit_ratio"]


def test_an_approximation_has_its_errors_and_no_limit():
    asked = Asked(SMALL)
    asked.exact("first")
    results = [asked.results("first")[0] * 1.5]
    assert asked.complaint("first", results, "approximate") == ""
    assert asked.told[0]["error_limit_ratio"] is None
    assert asked.told[0]["error_l2_ratio"] == pytest.approx(0.5, rel=1e-3)


def test_wide_scores_answered_by_the_first_result_come_from_memory():
    asked = Asked(SMALL)
    asked.exact("first")
    first = asked.results("first")
    asked.complaint("first", first)
    assert "answers from memory" in asked.complaint("wide", first)
    assert "with scores up to 150" in asked.complaint("wide", [first[0] + 1.0])


def test_what_does_not_fit_what_is_judged_gives_no_verdict():
    asked = Asked(SMALL)
    asked.exact("first")
    (output,) = asked.results("first")
    other = Case(backend="sdpa", problem=replace(SMALL, heads=4))
    with pytest.raises(ValueError, match="not of the problem that is judged"):
        asked.client.complaint(other, "exact", "first", [output])
    with pytest.raises(ValueError, match="fewer bytes"):
        asked.judge._judged(
            {
                "case": asked.case.fields(),
                "check": "first",
                "exactness": "exact",
                "tensors": [{"shape": [9], "dtype": "torch.float32"}],
            },
            bytearray(8),
        )
    assert asked.told == []
    assert "output of shape [300, 2]" in asked.complaint("first", [output[0, 0, :, :2]])


def test_a_result_that_the_judge_cannot_compute_is_a_reason(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] can't allocate memory")

    monkeypatch.setattr("attnbench.harness.worker.judge.CorrectnessCheck", fails)
    with pytest.raises(NotJudged, match="allocate memory"):
        Asked(SMALL).exact("first")


BEFORE_THE_FORK = """
import os, sys
from attnbench.harness.worker import serve

class Parent:
    arguments, verdict_fd = ["cpu"], -1

def judged(parent, device):
    print(*(name for name in sys.modules if name.startswith("attnbench.impls.")))
    print(len(os.listdir("/proc/self/task")))
    sys.exit()

from attnbench.harness.worker import judge_process
serve.Parent, judge_process.start_judge = Parent, judged
import numpy, torch
print(len(os.listdir("/proc/self/task")))
serve.main()
"""


@pytest.mark.long
def test_the_judge_begins_before_any_backend_and_any_thread_of_torch():
    done = ran([sys.executable, "-c", BEFORE_THE_FORK])
    assert done.stdout, done.stderr
    with_torch, modules, threads = done.stdout.splitlines()
    parts = {name.split(".")[2] for name in modules.split()}
    ours = {"backend", "discovery", "layer", "masks", "peak_formulas", "problem", "reference"}
    ours |= {"axis", "lengths", "attention_flops", "kv_storage", "kv_tensors", "_sdpa_kernels"}
    assert "reference" in parts
    assert parts <= ours
    assert threads == with_torch


@pytest.mark.long
def test_only_the_judge_can_write_a_verdict():
    worker = start_worker("cpu")
    try:
        (judge,) = psutil.Process(worker.pid).children()
        mine = sockets_of(os.getpid())
        if os.geteuid():
            with pytest.raises(PermissionError):
                sockets_of(judge.pid)
        else:
            line = sockets_of(judge.pid)
            assert len(line) == 2  # to the worker, and to the run
            assert not (sockets_of(worker.pid) | mine) & line
    finally:
        worker.kill()


def sockets_of(pid: int) -> set[str]:
    found = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # of the loop itself
            found.add(str(one.readlink()))
    return {one for one in found if one.startswith("socket:")}
