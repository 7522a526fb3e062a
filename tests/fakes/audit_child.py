"""A child of an audit with kernels of its own: one is well, one surely spills, one does not
compile, one takes its process with it.

AUDIT_CANARY=slow: all of them are well, and take their time. AUDIT_CANARY=blind: Triton came
without nvdisasm.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

from attnbench.harness.audit import child, compiler as examine, cuda_tools as tools
from attnbench.impls._triton.configs import Config
from attnbench.impls._triton.jobs import Job

WELL = Config(32, 32, 4, 1)
SPILLS = Config(128, 64, 4, 1)  # with heads of 256: an accumulator of 256 registers per thread
BROKEN = Config(48, 32, 4, 1)  # no power of two
DEADLY = Config(64, 32, 4, 1)


def few(capability: tuple[int, int], dtypes: tuple[Any, ...]) -> Iterator[Job]:
    configs = [WELL, SPILLS, BROKEN, DEADLY, WELL]
    if chosen("slow"):
        configs = [Config(16 << place, 32, 4, 1) for place in range(4)]
    elif chosen("blind"):
        configs = [WELL, SPILLS]
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


def facts(job: Job) -> dict[str, Any]:
    if chosen("slow"):
        time.sleep(60)
    if job.config == DEADLY:
        print("dying as a compiler does", flush=True)
        os.abort()
    return compile_it(job)


def tool_path(tool: str) -> str:
    if chosen("blind") and tool == "nvdisasm":
        raise tools.Unreadable("Triton has no nvdisasm here, which would read it")
    return known_path(tool)


def chosen(what: str) -> bool:
    return os.environ.get("AUDIT_CANARY") == what


if __name__ == "__main__":
    compile_it, examine.facts, examine.jobs = examine.facts, facts, few
    known_path, tools.tool_path = tools.tool_path, tool_path
    child.main()
