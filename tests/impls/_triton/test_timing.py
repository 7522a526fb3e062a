"""Launches are timed on a fake GPU: what the host takes is not in the time, and turns are fair."""

import pytest
import torch

from attnbench.impls._triton.timing import ROUNDS, by_turns

CUDA = torch.device("cuda", 0)


class Kernels:
    """Kernels that run as long as a test says: `seconds` by name, times `drift` per launch made."""

    def __init__(self, gpu, drift=1.0, **seconds):
        self.gpu, self.drift, self.seconds = gpu, drift, seconds
        self.started = 0

    def starts(self):
        return [lambda name=name: self.start(name) for name in self.seconds]

    def start(self, name):
        self.started += 1
        self.gpu.launch(name, self.seconds[name] * self.drift**self.started)


def test_the_time_is_the_devices_though_the_host_needs_longer(fake_gpu):
    fake_gpu.launch_s = 70e-6
    kernels = Kernels(fake_gpu, short=20e-6, longer=25e-6)
    short, longer = by_turns(kernels.starts(), CUDA)
    assert short.median_ms == pytest.approx(0.020)
    assert longer.median_ms == pytest.approx(0.025)
    assert (short.late, longer.late) == (0, 0)
    assert len(short.readings_ms) == len(longer.readings_ms) == ROUNDS >= 5


@pytest.mark.parametrize("drift", [0.9995, 1.0005])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_clock_that_drifts_does_not_choose(fake_gpu, drift, order):
    seconds = {"a": 100e-6, "b": 103e-6}
    kernels = Kernels(fake_gpu, drift, **{name: seconds[name] for name in order})
    found = dict(zip(order, by_turns(kernels.starts(), CUDA), strict=True))
    assert found["a"].median_ms < found["b"].median_ms
    readings = [ms for one in found.values() for ms in one.readings_ms]
    assert max(readings) > 1.03 * min(readings), "the drift is as large as the difference"
