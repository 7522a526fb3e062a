"""On PYTHONPATH: a worker of attnbench that is started finds the fake GPU, on the real clock.

A clock turned by hand would be found out: the parent process compares it with its own.
FAKE_CUDA_KERNEL_S: how long every kernel takes. FAKE_CUDA_LAUNCHED: a file that gets the names of
kernels as they are launched, a line each. FAKE_CUDA_EXCLUSIVE: the GPU is in exclusive mode, and
the process with its context holds this file.
"""

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path

WORKER = "attnbench.harness.worker.serve"


class Told(list[str]):
    """Names of kernels, also told to a file."""

    def __init__(self, file: str) -> None:
        self.file = Path(file).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 until the end

    def append(self, name: str) -> None:
        super().append(name)
        self.file.write(f"{name}\n")


def start() -> AbstractContextManager[object]:
    from attnbench.harness.measure import clock
    from tests.fakes.cuda import FakeGpu, RealClock, fake_cuda
    from tests.fakes.nvml.driver import UUID

    gpu = FakeGpu(RealClock(), uuid=UUID.removeprefix("GPU-"))
    gpu.other_s = float(os.environ.get("FAKE_CUDA_KERNEL_S", gpu.other_s))
    clock.L2_FLUSH_BYTES = 1 << 20  # a CPU writes them
    clock.LEFT_OVER_MS = 50.0  # this host may be busy with other things between two readings
    clock.GRAPH_BELOW_MS = 1e3  # and its calls be long
    clock.BLOCKS, clock.CALLS = 2, 5
    if file := os.environ.get("FAKE_CUDA_LAUNCHED"):
        gpu.launched = Told(file)
    if file := os.environ.get("FAKE_CUDA_EXCLUSIVE"):
        gpu.exclusive = Path(file)
    entered = fake_cuda(gpu)
    entered.__enter__()
    return entered


if WORKER in sys.orig_argv:
    until_the_end = start()
