"""On PYTHONPATH: a worker of attnbench that is started finds the fake GPU, on the real clock."""

import os
import sys

WORKER = "attnbench.harness.worker.serve"

if WORKER in sys.orig_argv:
    from attnbench.harness.measure import clock, launch, pace
    from tests.fakes.cuda import FakeGpu, RealClock, fake_cuda
    from tests.fakes.nvml.driver import UUID

    gpu = FakeGpu(RealClock(), uuid=UUID.removeprefix("GPU-"))
    gpu.other_s = float(os.environ.get("FAKE_CUDA_KERNEL_S", gpu.other_s))
    clock.L2_FLUSH_BYTES = 1 << 20  # a CPU writes them
    launch.BLOCKS, launch.CALLS = 2, 5
    pace.SIZE["cuda"], pace.MEMORY_BYTES["cuda"] = 32, 1 << 20
    installed = fake_cuda(gpu)
    installed.__enter__()
