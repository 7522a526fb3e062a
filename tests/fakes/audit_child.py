"""An audit's child with kernels of its own: one is good, one spills, one does not compile, one
kills its process.

AUDIT_CANARY=slow: all are good and slow.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from attnbench.harness.audit import child, compiler
from attnbench.impls._triton.configs import Config
from attnbench.impls._triton.jobs import Job

GOOD = Config(32, 32, 4, 1)
SPILLS = Config(128, 64, 4, 1)  # with heads of 256: an accumulator of 256 registers per thread
BROKEN = Config(48, 32, 4, 1)  # not a power of two
DEADLY = Config(64, 32, 4, 1)
SLOW = os.environ.get("AUDIT_CANARY") == "slow"


def few(capability: tuple[int, int], dtypes: tuple[Any, ...]) -> Iterator[Job]:
    configs = [GOOD, SPILLS, BROKEN, DEADLY, GOOD]
    if SLOW:
        configs = [Config(16 << place, 32, 4, 1) for place in range(4)]
    for config in configs:
        width = 256 if config == SPILLS else 32
        yield Job(
            kernel="forward",
            config=config,
            capability=capability,
            dtype=dtypes[0],
            d_k=width,
            d_v=width,
            causal=False,
        )


def compile_kernel(job: Job) -> Any:
    if SLOW:
        time.sleep(60)
    if job.config == DEADLY:
        print("dying as a compiler does", flush=True)
        os.abort()
    return real_compile(job)


if __name__ == "__main__":
    real_compile = compiler.compile_kernel
    compiler.compile_kernel, compiler.jobs = compile_kernel, few
    child.main()
