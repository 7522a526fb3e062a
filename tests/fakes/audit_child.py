"""An audit's child with kernels of its own: one is good, one spills, one does not compile, one
kills its process.

AUDIT_CANARY=slow: all are good and slow. AUDIT_CANARY=no_nvdisasm: Triton came without nvdisasm.
AUDIT_CANARY=dies_reading: all compile, and reading the code of one of them kills the process.
"""

import os
import time
from collections.abc import Iterator, Sequence
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
    elif chosen("dies_reading"):
        configs = [GOOD, DEADLY, Config(16, 32, 4, 1)]
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


def build(job: Job) -> Any:
    if chosen("slow"):
        time.sleep(60)
    if job.config == DEADLY and not chosen("dies_reading"):
        print("dying as a compiler does", flush=True)
        os.abort()
    return real_build(job)


def disassemble(built: Sequence[Any]) -> None:
    if chosen("dies_reading") and any(one.job.config == DEADLY for one in built):
        os.abort()
    real_disassemble(built)


def tool_path(tool: str) -> str:
    if chosen("no_nvdisasm") and tool == "nvdisasm":
        raise nvidia_tools.Unreadable("Triton has no nvdisasm here to read it with")
    return real_path(tool)


def chosen(what: str) -> bool:
    return os.environ.get("AUDIT_CANARY") == what


if __name__ == "__main__":
    real_build, real_path = compiler.build, nvidia_tools.tool_path
    real_disassemble, compiler.disassemble = compiler.disassemble, disassemble
    compiler.build, compiler.jobs, nvidia_tools.tool_path = build, few, tool_path
    child.main()
