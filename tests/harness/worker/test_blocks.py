"""How often a case is called before it is timed, which blocks are measured again, and which have a
processor time that holds.
"""

import pytest
import torch

from attnbench.harness.measure import clock
from attnbench.harness.measure.clock import CudaClock, HostClock, Samples
from attnbench.harness.worker import blocks
from attnbench.harness.worker.blocks import (
    MOST_AGAIN_S,
    MOST_COLD_S,
    BlockTimer,
    call_until_stationary,
)
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

    monkeypatch.setattr(blocks, "now_s", lambda: passed_s)
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


QUIET = {"wall_s": 0.01, "user_s": 0.02, "system_s": 0.0, "waited_s": 0.0, "minor_faults": 0}
DISTURBED = QUIET | {"wall_s": 0.04, "waited_s": 0.04}
ASLEEP = DISTURBED | {"user_s": 0.001, "waited_s": 0.01}
COLD = QUIET | {"minor_faults": 11_000}


class Waits:
    def __init__(self, needless=False, possible=True):
        self.needless, self.possible, self.in_force = needless, possible, False

    def begin(self):
        self.in_force = self.possible

    def end(self):
        self.in_force = False


class Machine:
    """Its readings in turn, and a clock whose calls take `call_s`."""

    def __init__(self, *readings, call_s=0.01):
        self.readings, self.call_s, self.tried = list(readings), call_s, 0

    def before(self):
        pass

    def during(self, between):
        return between

    def after(self):
        return dict(self.readings.pop(0))

    def sample(self, calls, between, first):
        self.tried += 1
        ms = 1e3 * self.call_s
        return Samples(block_ms=[ms], first_ms=1e-3 * self.tried, processor_ms=9.0, thread_ms=5.0)


ON_GPU = object()


def block_of(*readings, waits=None, call_s=0.01):
    machine = Machine(*readings, call_s=call_s)
    waits = None if waits is ON_GPU else waits or Waits()
    timer = BlockTimer(machine, waits, heap_is_warm=True)
    block = timer.measure(machine, 1, lambda last: None, first=False)
    assert block.spent_s == pytest.approx(machine.tried * call_s, abs=1e-4)
    assert block.conditions["first_call_ms"] == 1e-3  # of the first try, whose values were new
    return block.conditions, waits


def outcome(conditions):
    return conditions["tries"], conditions["short_waits"], conditions.get("thread_ms")


def test_a_quiet_block_is_measured_once_and_its_processor_time_holds():
    conditions, waits = block_of(QUIET)
    assert outcome(conditions) == (1, 0, 5.0)
    assert not waits.in_force


def test_a_block_with_a_gpus_clock_below_three_quarters_of_its_median_is_measured_again():
    low, good = (
        {"wall_s": 0.01, "minor_faults": 0, "sm_clock_ratio": ratio} for ratio in (0.7, 0.8)
    )
    tries = [block_of(*turns, waits=ON_GPU)[0] for turns in ((low, good), (low, low, low), (good,))]
    assert [(one["tries"], one["sm_clock_ratio"]) for one in tries] == [
        (2, 0.8),
        (3, 0.7),
        (1, 0.8),
    ]


@pytest.mark.parametrize(
    ("readings", "waits", "call_s", "wanted"),
    [
        ((DISTURBED, QUIET), Waits(), 0.01, (2, 0, 5.0)),
        # threads that spin beside other work, and a call that sleeps: no time of their own
        ((DISTURBED,) * 3, Waits(possible=False), 0.01, (3, 0, None)),
        ((DISTURBED,), Waits(needless=True), 0.01, (1, 0, 5.0)),  # one thread spins for nobody
        ((ASLEEP,), Waits(needless=True), 0.01, (1, 0, None)),
        ((COLD, COLD), Waits(), 0.01, (2, 0, 5.0)),  # the heap was cold: once more
        ((COLD, COLD), Waits(), 2 * MOST_AGAIN_S, (2, 0, 5.0)),
        ((COLD,), Waits(), MOST_COLD_S, (1, 0, 5.0)),
    ],
)
def test_what_disturbs_decides_how_often_a_block_is_measured(readings, waits, call_s, wanted):
    assert outcome(block_of(*readings, waits=waits, call_s=call_s)[0]) == wanted


def test_what_goes_on_disturbing_makes_waits_short():
    conditions, waits = block_of(DISTURBED, DISTURBED, DISTURBED)
    assert outcome(conditions) == (3, 1, 5.0)
    assert waits.in_force


def test_short_waits_last_while_blocks_are_disturbed_and_end_with_a_quiet_one():
    waits = Waits()
    waits.begin()
    assert outcome(block_of(DISTURBED, waits=waits)[0]) == (1, 1, 5.0)
    assert outcome(block_of(QUIET, QUIET, waits=waits)[0]) == (2, 0, 5.0)
    assert not waits.in_force


def test_a_long_block_is_not_repeated_but_the_next_one_has_short_waits():
    conditions, waits = block_of(DISTURBED, call_s=2 * MOST_AGAIN_S)
    assert outcome(conditions) == (1, 0, None)
    assert waits.in_force
