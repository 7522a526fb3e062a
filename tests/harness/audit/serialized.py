"""Audit our kernels as they once were: with loops that may run zero times. Prints rows as JSON.

`python -m tests.harness.audit.serialized`: a process of its own, whose kernels module is a copy
without the conditions before its loops. ptxas waits for each matrix product of such a kernel.
"""

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from attnbench.impls._triton.configs import Config
from tests.impls._triton.changed import changed_kernels

KERNELS = "attnbench.impls._triton.kernels"
CONDITION = re.compile(
    r"^    if (?:whole > inner|WARP_SPECIALIZE or whole < end|whole < end|blocks > 0|edges > 0):$",
    re.MULTILINE,
)
CONFIG = Config(128, 128, 8, 2)


def without_conditions(folder: Path) -> None:
    """Import such a copy under the name of our kernels."""
    counts = []

    def change(source: str) -> str:
        source, changed = CONDITION.subn("    if True:", source)
        counts.append(changed)
        return source

    changed_kernels(folder / "kernels", KERNELS, change)
    assert sum(counts) == 6


def audited() -> dict[str, Any]:
    from attnbench.harness.audit.compiler import compile_kernel
    from attnbench.impls._triton.jobs import Job

    job = Job(
        kernel="forward",
        config=CONFIG,
        capability=(9, 0),
        dtype="bf16",
        d_k=128,
        d_v=128,
        causal=False,
    )
    return compile_kernel(job)


if __name__ == "__main__":
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        if "old" in sys.argv:
            without_conditions(Path(folder))
        print(json.dumps(audited()))
