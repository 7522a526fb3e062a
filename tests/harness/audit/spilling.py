"""Compile kernels that spill; print as JSON what ptxas reports and what an audit reads from cubins.

`python -m tests.harness.audit.spilling`: a process of its own, so that no other test imports
triton. Its cache must be empty, because ptxas reports only while it compiles.
"""

import io
import json
import re
from contextlib import redirect_stdout

import torch
from triton import knobs

from attnbench.harness.audit.compiler import compile_kernel
from attnbench.impls._triton.configs import Config, Kernel
from attnbench.impls._triton.jobs import Job

SPILLING: tuple[tuple[tuple[int, int], Kernel, Config], ...] = (
    ((8, 0), "grad_kv", Config(64, 128, 4, 1)),  # spills half words too
    ((9, 0), "grad_kv", Config(64, 64, 4, 2)),
    ((10, 0), "grad_kv", Config(64, 128, 4, 1)),
)


def both(capability: tuple[int, int], kernel: Kernel, config: Config) -> dict[str, list[int]]:
    job = Job(
        kernel=kernel,
        config=config,
        capability=capability,
        dtype="bf16",
        d_k=128,
        d_v=128,
        causal=True,
    )
    log = io.StringIO()
    with redirect_stdout(log):
        found = compile_kernel(job)
    reported = re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+)"
        r" registers",
        log.getvalue(),
        re.S,
    )
    assert reported is not None, log.getvalue()
    names = ("thread_stack_bytes", "spill_store_bytes", "spill_load_bytes", "thread_register_count")
    return {
        "ptxas": [int(number) for number in reported.groups()],
        "audit": [found[name] for name in names],
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    knobs.nvidia.dump_ptxas_log = True
    print(json.dumps([both(*one) for one in SPILLING]))
