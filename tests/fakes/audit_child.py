"""An audit's child with kernels of its own: one is good, one spills, one does not compile, one
kills its process.

AUDIT_CANARY=slow: all are good and slow. AUDIT_CANARY=no_nvdisasm: Triton came without nvdisasm.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from attnbench.harness.audit import child, compiler
from attnbench.impls._triton import nvidia_tools
from attnbench.impls._triton.configs import Config
from attnbench.impls._triton.jobs import Job

GOOD = Config(32, 32, 4, 1)
SPILLS = Config(128, 64, 4, 1)  # with heads of 256: an accumulator of 256 registers per thread
BROKEN = Config(48, 32, 4, 1)  # not a power of two
DEADLY = Config(64, 32, 4, 1)


def few(capability: tuple[int, int], dtypes: tuple[Any, ...]) -> Iterator[Job]:
    configs = [GOOD, SPILLS, BROKEN, DEADLY, GOOD]
    if chosen("slow"):
        configs = [Config(16 << place, 32, 4, 1) for place in range(4)]
    elif chosen("no_nvdisasm"):
        configs = [GOOD, SPILLS]
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
    if chosen("slow"):
        time.sleep(60)
    if job.config == DEADLY:
        print("dying as a compiler does", flush=True)
        os.abort()
    return real_compile(job)


def tool_path(tool: str) -> str:
    if chosen("no_nvdisasm") and tool == "nvdisasm":
        raise nvidia_tools.Unreadable("Triton has no nvdisasm here to read it with")
    return real_path(tool)


def chosen(what: str) -> bool:
    return os.environ.get("AUDIT_CANARY") == what


if __name__ == "__main__":
    real_compile, real_path = compiler.compile_kernel, nvidia_tools.tool_path
    compiler.compile_kernel, compiler.jobs = compile_kernel, few
    nvidia_tools.tool_path = tool_path
    child.main()
