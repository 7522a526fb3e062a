"""harness/devices/load.py: what others use, by the kernel's count of it, and nothing of our own."""

import subprocess
import sys
import time
from collections import namedtuple

import pytest

from attnbench.harness.devices import load
from attnbench.harness.devices.load import Load, LoadMeter, busy_text


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
        (3, "If that lasts, only differences above 1.5x will show; memory is exact. Stop and add"),
        (1, "only differences above 4x will show"),
        (0, "the run takes longer; memory is exact"),
    ],
)
def test_what_other_work_means_for_a_run_is_said(processes: int, says: str) -> None:
    text = busy_text(Load(1.62, 2), processes=processes)
    assert says in text
    assert "other programs use 1.6 of its 2 cores" in text
    assert busy_text(None, processes=processes) == ""
