"""Launches are timed on a fake GPU: what the host takes is not in the time, and turns are fair."""

import pytest
import torch

from attnbench.impls._triton import timing
from attnbench.impls._triton.timing import DROPPED_RATIO, ROUNDS, by_turns

CUDA = torch.device("cuda", 0)


class Kernels:
    """Kernels that run as long as a test says: `seconds` by name, times `drift` per launch made."""

    def __init__(self, gpu, **seconds):
        self.gpu, self.seconds = gpu, seconds
        self.started = []
        self.drift = 1.0

    def starts(self):
        return [lambda name=name: self.start(name) for name in self.seconds]

    def start(self, name):
        self.started.append(name)
        self.gpu.launch(name, self.seconds[name] * self.drift ** len(self.started))

    def turns(self):
        """The names in the order of their readings: launches in a row count once."""
        gaps = zip([None, *self.started], self.started, strict=False)
        return [name for before, name in gaps if name != before]


def test_the_time_is_the_devices_though_the_host_needs_longer(fake_gpu):
    fake_gpu.launch_s = 70e-6
    kernels = Kernels(fake_gpu, short=20e-6, longer=25e-6)
    short, longer = by_turns(kernels.starts(), CUDA)
    assert short.median_ms == pytest.approx(0.020)
    assert longer.median_ms == pytest.approx(0.025)
    assert (short.late, longer.late) == (0, 0)
    assert len(short.readings_ms) == len(longer.readings_ms) == ROUNDS >= 5


def test_a_candidate_that_is_clearly_slower_is_read_once(fake_gpu):
    kernels = Kernels(fake_gpu, fast=100e-6, near=140e-6, slow=160e-6)
    fast, near, slow = by_turns(kernels.starts(), CUDA)
    assert [one.dropped for one in (fast, near, slow)] == [False, False, True]
    assert slow.readings_ms == (pytest.approx(0.16),)
    assert slow.median_ms > DROPPED_RATIO * fast.median_ms
    launches = timing.HOST_LAUNCHES + timing.FIRST_LAUNCHES
    assert kernels.started.count("slow") == launches


def test_candidates_take_turns_and_every_other_round_runs_backwards(fake_gpu):
    kernels = Kernels(fake_gpu, a=100e-6, b=101e-6, c=102e-6)
    by_turns(kernels.starts(), CUDA)
    rounds = [*"abc", *"ba", *"bc", *"ba", *"bc"]
    assert kernels.turns()[-len(rounds) :] == rounds


@pytest.mark.parametrize("drift", [0.9995, 1.0005])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_clock_that_drifts_does_not_choose(fake_gpu, drift, order):
    seconds = {"a": 100e-6, "b": 103e-6}
    kernels = Kernels(fake_gpu, **{name: seconds[name] for name in order})
    kernels.drift = drift
    found = dict(zip(order, by_turns(kernels.starts(), CUDA), strict=True))
    assert found["a"].median_ms < found["b"].median_ms
    readings = [ms for one in found.values() for ms in one.readings_ms]
    assert max(readings) > 1.03 * min(readings), "the drift is as large as the difference"


def test_a_reading_for_which_the_host_was_late_is_made_again_with_a_longer_delay(fake_gpu):
    kernels = Kernels(fake_gpu, a=50e-6)
    (start,) = kernels.starts()
    pauses = iter([0] * timing.HOST_LAUNCHES + [0, 0.004])

    def hesitates():
        fake_gpu.clock.pass_s(next(pauses, 0))
        start()

    (found,) = by_turns([hesitates], CUDA)
    assert found.late == 0
    assert found.readings_ms == (pytest.approx(0.05),) * ROUNDS
