"""harness/run/threads.py: workers have the cores that are idle, unless the user has chosen."""

import json
import os
from pathlib import Path

import pytest

import attnbench
from attnbench.harness.devices.load import Load, LoadMeter
from attnbench.harness.run import threads
from attnbench.harness.run.threads import THREADS, worker_threads


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv(THREADS, raising=False)
    return monkeypatch


def beside(others: float, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_S", 0.0)
    monkeypatch.setattr(LoadMeter, "read", lambda _: Load(others, cores))


@pytest.mark.parametrize(
    ("others", "cores", "count"), [(2.0, 2, "1"), (1.0, 2, "1"), (2.5, 8, "5"), (0.1, 2, None)]
)
def test_workers_have_the_cores_that_are_idle(
    others: float, cores: int, count: str | None, unchosen: pytest.MonkeyPatch
) -> None:
    beside(others, cores, unchosen)
    with worker_threads("cpu") as text:
        assert os.environ.get(THREADS) == count
    assert text.startswith(f"measured with {count} of {cores} threads because " if count else "")
    assert bool(text) == bool(count)
    assert THREADS not in os.environ


def test_what_the_user_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(2.0, 2, monkeypatch)
    monkeypatch.setenv(THREADS, "7")
    for meta in (None, {"environment": {"threads": 3}}):
        with worker_threads("cpu", meta) as text:
            assert (text, os.environ[THREADS]) == ("", "7")
        assert os.environ[THREADS] == "7"


def test_a_gpu_has_what_its_launches_need(unchosen: pytest.MonkeyPatch) -> None:
    beside(2.0, 2, unchosen)
    unchosen.setattr(threads, "has_gpu", lambda: True)
    with worker_threads("auto") as text:
        assert (text, THREADS in os.environ) == ("", False)
    with worker_threads("cpu"):
        assert os.environ[THREADS] == "1"


def test_a_resumed_run_has_the_threads_that_it_had(unchosen: pytest.MonkeyPatch) -> None:
    beside(2.0, 2, unchosen)
    with worker_threads("cpu", {"environment": {"threads": 3}}) as text:
        assert (text, os.environ[THREADS]) == ("", "3")
    assert THREADS not in os.environ


@pytest.mark.long
def test_a_run_from_python_says_first_and_last_that_it_takes_the_idle_cores(
    tmp_path: Path, unchosen: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside(3.0, 4, unchosen)
    run = attnbench.run(
        backends="fused", out=tmp_path, seq_len=[16], heads=2, head_dim=8, device="cpu",
        plan="quick", measure="memory", quiet=False,
    )  # fmt: skip
    assert json.loads((run.path / "run.json").read_text())["environment"]["threads"] == 1
    told = " ".join(capsys.readouterr().err.split())
    sentence = "measured with 1 of 4 threads because other programs use 3.0 of its 4 cores"
    assert told.count(f"{sentence}; threads=4 takes all") == 2
    assert told.endswith("threads=4")
    assert THREADS not in os.environ
