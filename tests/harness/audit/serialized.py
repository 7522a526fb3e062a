"""Audit our kernels as they once were: with loops that may run zero times. Prints rows as JSON.

`python -m tests.harness.audit.serialized`: a process of its own, whose kernels module is a copy
without the conditions before its loops. ptxas waits for each matrix product of such a kernel.
"""

import importlib.util
import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import attnbench.impls._triton as package
from attnbench.impls._triton.configs import Config

KERNELS = "attnbench.impls._triton.kernels"
CONDITION = re.compile(
    r"^    if (?:whole > 0|WARP_SPECIALIZE or whole < end|whole < end|blocks > 0|edges > 0):$",
    re.MULTILINE,
)
CONFIG = Config(128, 128, 8, 2)


def without_conditions(folder: Path) -> None:
    """Import such a copy under the name of our kernels. Triton reads its source."""
    source = (Path(package.__file__).parent / "kernels.py").read_text(encoding="utf-8")
    source, changed = CONDITION.subn("    if True:", source)
    assert changed == 6
    path = folder / "kernels.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(KERNELS, path)
    sys.modules[KERNELS] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


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
