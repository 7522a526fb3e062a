"""One trial, in this process and without a budget: what it computes, and how it fails."""

from pathlib import Path
from time import perf_counter

import pytest

from attnbench.harness.cases.case import Case
from attnbench.harness.worker.trials import try_length
from attnbench.impls import Problem
from tests.conftest import FAKE_BACKENDS
from tests.harness.worker.configs import settings, steps_on

CONFIG = settings()


SLOWLY_MADE = '''
"""Takes its time to be made, and then all memory."""

import time

import torch

COMPILES = True
WHERE = "in prepare"


def compile_ahead(problem, device):
    time.sleep(0.5 if WHERE == "ahead" else 0.0)


def prepare(problem, inputs, weights):
    time.sleep(0.5 if WHERE == "in prepare" else 0.0)

    def call():
        raise torch.OutOfMemoryError("DefaultCPUAllocator: you tried to allocate 68719476736 bytes")

    return call
'''


def tried(backend: str, **changes: object) -> dict:
    sizes: dict = {"batch": 1, "seq_len": 64, "d_model": 32, "heads": 2, **changes}
    return try_length(Case(backend=backend, problem=Problem(**sizes)), CONFIG)


@pytest.mark.parametrize("backend", ["naive", "fused", "sdpa"])
@pytest.mark.parametrize("passes", ["forward", "backward", "forward+backward"])
@pytest.mark.parametrize("scope", ["core", "layer"])
def test_every_pass_and_scope_is_one_call(backend: str, passes: str, scope: str) -> None:
    answer = tried(
        backend, passes=passes, scope=scope, causal=True, kv_seq_len=96, causal_align="bottom_right"
    )
    assert (answer["status"], answer["reason"], answer["log_tail"]) == ("ok", "", None)
    assert answer["spent_s"] > 0


@pytest.mark.parametrize(
    ("backend", "status", "reason"),
    [
        ("runs_out_of_memory", "oom", "64.00 GiB more did not fit into the budget of 1.0 GiB"),
        ("raises", "error", "KeyError: 'a bug of the backend'"),
        ("needs_package", "unavailable", "no_such_package_for_attnbench"),
        ("sdpa:cudnn", "unsupported", "torch has the cudnn kernel for CUDA only"),
    ],
)
def test_what_does_not_go_says_why(
    monkeypatch: pytest.MonkeyPatch, backend: str, status: str, reason: str
) -> None:
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(FAKE_BACKENDS))
    answer = tried(backend)
    assert answer["status"] == status
    assert reason in answer["reason"]
    assert ("KeyError" in (answer["log_tail"] or "")) == (status == "error")


@pytest.mark.parametrize("where", ["in prepare", "ahead"])
def test_compiling_is_no_part_of_a_trial_also_if_the_call_then_runs_out_of_memory(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = SLOWLY_MADE if where == "in prepare" else SLOWLY_MADE.replace("COMPILES = True", "")
    name = f"slowly_made_{where.replace(' ', '_')}"
    (tmp_path / f"{name}.py").write_text(text.replace('"in prepare"\n', f'"{where}"\n', 1))
    monkeypatch.setenv("ATTNBENCH_BACKENDS", str(tmp_path))
    since = perf_counter()
    answer = tried(name)
    assert answer["status"] == "oom"
    assert answer["spent_s"] <= perf_counter() - since - 0.5


def test_a_trial_on_a_gpu_waits_for_its_kernels_and_runs_out_of_the_gpus_memory(fake_gpu) -> None:
    steps = steps_on("cuda", budget_bytes=8 << 20)
    fake_gpu.kernel_s["softmax"] = 0.25

    def trial(seq_len: int) -> dict:
        problem = Problem(batch=1, seq_len=seq_len, d_model=32, heads=2)
        return steps.trial(Case(backend="keeps_scores", problem=problem).fields())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNBENCH_BACKENDS", str(FAKE_BACKENDS))
        fits, does_not = trial(256), trial(2048)
    assert fits["status"] == "ok"
    assert fits["spent_s"] == pytest.approx(0.25, rel=0.01)
    assert does_not["status"] == "oom"
    assert does_not["reason"] == "32.00 MiB more did not fit into the budget of 8.0 MiB"
