"""harness/devices/load.py: what others use, by the kernel's count of it, and nothing of our own;
workers have the cores that are idle, unless the user has chosen.
"""

import json
import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import pytest

import attnbench
from attnbench.harness.devices import load
from attnbench.harness.devices.load import THREADS, Load, LoadMeter, busy_text, worker_threads


def test_idle_time_and_other_cores_do_not_count_and_what_a_hypervisor_took_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = "user nice system idle iowait irq softirq steal guest guest_nice"
    kind = namedtuple("Times", names)
    times = [kind(100, 2, 30, 5e3, 40, 5, 6, 7, 50, 1), kind(200, 0, 10, 4e3, 50, 0, 0, 0, 0, 0)]
    monkeypatch.setattr("psutil.cpu_times", lambda percpu: times)
    monkeypatch.setattr(load, "_own_s", lambda _: 0.0)
    for cores, busy_s in ({0}, 150), ({0, 1}, 150 + 210):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: cores)
        assert load._seconds() == busy_s


@pytest.mark.parametrize(
    ("others", "cores", "busy"),
    [(0.1, 2, False), (0.9, 2, True), (0.9, 16, True), (0.9, 64, False), (8.0, 64, True)],
)
def test_one_program_that_computes_disturbs_a_small_machine(
    others: float, cores: int, busy: bool
) -> None:
    assert Load(others, cores).is_busy == busy


def test_our_own_processes_are_no_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the machine did, but for what a child of ours used."""
    monkeypatch.setattr(load, "busy_s_of", lambda _: 0.0)
    meter = LoadMeter()
    # user and system time are both cut to whole ticks of 10 ms
    code = "import time\nwhile time.process_time() < 0.32: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    time.sleep(load.LEAST_S)
    counted = (meter._before or 0.0) - (load._seconds() or 0.0)
    assert 0.3 <= round(counted, 2) <= 5.0
    assert meter.read() == Load(0.0, meter.read().cores)


@pytest.mark.parametrize(
    ("processes", "says"),
    [
        (3, "only differences above 1.5x will show; memory is exact"),
        (1, "only differences above 4x will show"),
        (0, "the run takes longer; memory is exact"),
    ],
)
def test_what_other_work_means_for_a_run_is_said(processes: int, says: str) -> None:
    text = busy_text(Load(1.62, 2), processes=processes)
    assert says in text
    assert "other programs use 1.6 of its 2 cores" in text
    assert busy_text(None, processes=processes) == ""


# ---- threads


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv(THREADS, raising=False)
    return monkeypatch


def beside(others: float, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "LEAST_S", 0.0)
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
    unchosen.setattr(load, "has_gpu", lambda: True)
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
    assert told.endswith("threads=4 takes all")
    assert THREADS not in os.environ
