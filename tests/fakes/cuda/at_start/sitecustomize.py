"""On PYTHONPATH: a worker of attnbench that is started finds the fake GPU.

FAKE_CUDA_KERNEL_S: how long every kernel takes. FAKE_CUDA_CLOCK=real: on the real clock, for
windows of the driver's counters; else its clock is turned by hand, and a busy machine does not show
in any number.
"""

import os
import sys
from contextlib import AbstractContextManager

WORKER = "attnbench.harness.worker.serve"


def start() -> AbstractContextManager[object]:
    import pytest

    from attnbench.harness.measure import clock, launch, pace
    from attnbench.harness.worker import measure, wall  # noqa: F401 - so that they are loaded
    from tests.fakes.cuda import FakeGpu, HandClock, RealClock, fake_cuda, turned_by_hand
    from tests.fakes.nvml.driver import UUID

    own: HandClock | RealClock = RealClock()
    if os.environ.get("FAKE_CUDA_CLOCK") != "real":
        own = HandClock()
        parts = ("measure", "worker", "calibration")
        patch = pytest.MonkeyPatch()
        turned_by_hand(own, patch, *(f"attnbench.harness.{part}" for part in parts))
    gpu = FakeGpu(own, uuid=UUID.removeprefix("GPU-"))
    gpu.other_s = float(os.environ.get("FAKE_CUDA_KERNEL_S", gpu.other_s))
    clock.L2_FLUSH_BYTES = 1 << 20  # a CPU writes them
    launch.BLOCKS, launch.CALLS = 2, 5
    pace.SIZE["cuda"], pace.MEMORY_BYTES["cuda"] = 32, 1 << 20
    entered = fake_cuda(gpu)
    entered.__enter__()
    return entered


if WORKER in sys.orig_argv:
    until_the_end = start()
