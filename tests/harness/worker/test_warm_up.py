"""How often a case is called before it is timed."""

import pytest
import torch

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import CudaClock, HostClock
from attnbench.harness.worker import warm_up
from attnbench.harness.worker.warm_up import call_until_stationary
from tests.fakes.cuda import FakeGpu


@pytest.mark.parametrize(
    ("before_ms", "each_s", "calls", "typical_ms"),
    [
        ([95.0], 20e-6, range(9, 2000), 0.02),  # the first call has loaded a library
        ([95.0, 0.02], 20e-6, range(8, 2000), 0.02),
        ([95.0], 30e-3, range(1, 2), 62.5),  # ten of them would take longer than there is
        ([400.0], 0.4, range(1), 400.0),  # one call is all there is time for
    ],
)
def test_a_slow_first_call_alone_is_no_warm_up(
    monkeypatch: pytest.MonkeyPatch,
    before_ms: list[float],
    each_s: float,
    calls: range,
    typical_ms: float,
) -> None:
    passed_s = 0.0

    def run() -> None:
        nonlocal passed_s
        passed_s += each_s

    monkeypatch.setattr(warm_up, "now_s", lambda: passed_s)
    monkeypatch.setattr(clock, "now_ns", lambda: passed_s * 1e9)
    readings = [*before_ms]
    _, call_ms = call_until_stationary(run, HostClock(), readings, (0.05, 0.05))
    assert len(readings) - len(before_ms) in calls
    assert call_ms == pytest.approx(typical_ms)


def test_a_warm_up_on_a_gpu_is_judged_by_the_gpus_own_times(fake_gpu: FakeGpu) -> None:
    """The host needs more for every launch, and the kernels take as long as before."""
    readings = [0.5]
    sizes_s = iter(range(20, 10**6))

    def run() -> None:
        fake_gpu.launch_s = 1e-6 * next(sizes_s)
        fake_gpu.launch("mm", 90e-6)

    device = torch.device("cuda", 0)
    found = call_until_stationary(run, CudaClock(device), readings, (0.05, 0.2))
    assert found == (True, pytest.approx(0.09))
    assert len(readings) > 10
    assert readings[2:] == pytest.approx([0.09] * (len(readings) - 2)), "the first tells the delay"
